//! Parameters for HTTP/2 that go to meshed endpoints, as an operator writes them.

use linkerd2_proxy_api::destination::http2_client_params as params;
use serde::Deserialize;

pub use linkerd2_proxy_api::destination::Http2ClientParams;

/// Why parameters for HTTP/2 were refused.
#[derive(Debug, thiserror::Error)]
#[error("these are no parameters for HTTP/2")]
pub struct Http2ParamsError(#[from] serde_json::Error);

/// Reads parameters for HTTP/2 to meshed endpoints: JSON with the message's own field names (spec §2.9.7).
/// Fields that the message doesn't have are ignored, as the original does.
pub fn parse_http2_params(json: &str) -> Result<Http2ClientParams, Http2ParamsError> {
    let read: ParamsJson = serde_json::from_str(json)?;
    Ok(Http2ClientParams {
        flow_control: read.flow_control.map(|flow| params::FlowControl {
            initial_connection_window_size: flow.initial_connection_window_size,
            initial_stream_window_size: flow.initial_stream_window_size,
            adaptive_flow_control: flow.adaptive_flow_control,
        }),
        keep_alive: read.keep_alive.map(|keep| params::KeepAlive {
            interval: keep.interval.map(DurationJson::message),
            timeout: keep.timeout.map(DurationJson::message),
            while_idle: keep.while_idle,
        }),
        internals: read.internals.map(|internals| params::Internals {
            max_concurrent_reset_streams: internals.max_concurrent_reset_streams,
            max_frame_size: internals.max_frame_size,
            max_send_buf_size: internals.max_send_buf_size,
        }),
    })
}

#[derive(Deserialize)]
struct ParamsJson {
    flow_control: Option<FlowControlJson>,
    keep_alive: Option<KeepAliveJson>,
    internals: Option<InternalsJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FlowControlJson {
    initial_connection_window_size: u32,
    initial_stream_window_size: u32,
    adaptive_flow_control: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeepAliveJson {
    interval: Option<DurationJson>,
    timeout: Option<DurationJson>,
    while_idle: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InternalsJson {
    max_concurrent_reset_streams: u32,
    max_frame_size: u32,
    max_send_buf_size: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DurationJson {
    seconds: i64,
    nanos: i32,
}

impl DurationJson {
    fn message(self) -> prost_types::Duration {
        prost_types::Duration { seconds: self.seconds, nanos: self.nanos }
    }
}
