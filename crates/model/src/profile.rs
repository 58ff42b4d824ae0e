//! A ServiceProfile, reduced to what an answer may depend on (spec §3.3.5, §4.3).

/// A ServiceProfile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceProfile {
    /// `spec.routes`, in their order: the first whose condition holds is the request's.
    pub routes: Vec<Route>,
    /// `spec.retryBudget`; `None`: the usual one.
    pub retry_budget: Option<RetryBudget>,
    /// `spec.dstOverrides`, in their order.
    pub dst_overrides: Vec<DstOverride>,
}

/// Requests that are counted, and perhaps retried, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name, a label of its metrics.
    pub name: String,
    /// Which requests are meant.
    pub condition: RequestMatch,
    /// Which responses are failures; the first whose condition holds decides.
    pub responses: Vec<ResponseClass>,
    /// A request may be sent again.
    pub retryable: bool,
    /// How long a request may take, in nanoseconds. 0: as long as it does.
    pub timeout_ns: i64,
}

/// A condition on requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestMatch {
    /// All of these hold.
    All(Vec<RequestMatch>),
    /// One of these holds.
    Any(Vec<RequestMatch>),
    /// This doesn't hold.
    Not(Box<RequestMatch>),
    /// The path matches this regular expression, whole.
    Path(String),
    /// The method, in upper case.
    Method(String),
}

/// Responses that count as failures, or as successes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseClass {
    /// Which responses are meant.
    pub condition: ResponseMatch,
    /// They are failures.
    pub failure: bool,
}

/// A condition on responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseMatch {
    /// All of these hold.
    All(Vec<ResponseMatch>),
    /// One of these holds.
    Any(Vec<ResponseMatch>),
    /// This doesn't hold.
    Not(Box<ResponseMatch>),
    /// The status is in a range; a bound of 0 is none.
    Status {
        /// The lowest.
        min: u32,
        /// The highest.
        max: u32,
    },
}

/// How many requests may be retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// For each request, so many retries.
    pub ratio: Ratio,
    /// And besides, so many a second.
    pub min_retries_per_second: u32,
    /// How long requests count, in nanoseconds.
    pub ttl_ns: i64,
}

/// A number that is equal to another one if it is written the same.
#[derive(Clone, Copy, Debug)]
pub struct Ratio(pub f32);

impl PartialEq for Ratio {
    fn eq(&self, other: &Ratio) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Ratio {}

/// A part of the requests goes elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DstOverride {
    /// Where, as it is written; without a port, the requested one is meant.
    pub authority: String,
    /// How much, among the others.
    pub weight: u32,
}
