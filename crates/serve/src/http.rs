//! Probes, metrics and explanations over HTTP: `/live`, `/ping`, `/ready`, `/metrics`, `/explain`, `/explain/profile`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;
use tonic::{Code, Status};

use crate::metrics::{Situation, scrape};
use crate::{Destination, Hub, Metrics};

/// The media type of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone)]
struct Admin {
    metrics: Arc<Metrics>,
    hub: Arc<Hub>,
    situation: Arc<dyn Situation>,
    explaining: Arc<Semaphore>,
}

/// Explanations at a time: each reads all EndpointSlices of a namespace, which is not to delay answers to proxies.
const EXPLANATIONS_MAX: usize = 1;

/// The admin routes. Whoever answers `/live` is alive; `/ready` says what it waits for, in its body.
pub fn admin(metrics: Arc<Metrics>, hub: Arc<Hub>, situation: Arc<dyn Situation>) -> Router {
    Router::new()
        .route("/live", get(async || "ok\n"))
        .route("/ping", get(async || "pong\n"))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics_page))
        .route("/explain", get(explain))
        .route("/explain/profile", get(explain_profile))
        .fallback(async || {
            (StatusCode::NOT_FOUND, "there are /live, /ready, /metrics and /explain\n")
        })
        .with_state(Admin {
            metrics,
            hub,
            situation,
            explaining: Arc::new(Semaphore::new(EXPLANATIONS_MAX)),
        })
}

async fn ready(State(admin): State<Admin>) -> Response {
    let waits_for = admin.situation.waits_for();
    // Answers from disk stay better than none: who can't write is ready nevertheless, and says so.
    let failing = admin.situation.disk_failing().map(|reason| format!("- {reason}\n"));
    let failing = failing.unwrap_or_default();
    if waits_for.is_empty() {
        return format!("ok\n{failing}").into_response();
    }
    let mut body = "not ready\n".to_owned();
    for reason in waits_for {
        body.push_str(&format!("- {reason}\n"));
    }
    body.push_str(&failing);
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}

async fn metrics_page(State(admin): State<Admin>) -> Response {
    match scrape(&admin.metrics, &admin.hub, &admin.situation) {
        Ok(text) => ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// `/explain?authority=A&address=IP[&token=T]`: why an address is or isn't in an answer, as JSON.
async fn explain(State(admin): State<Admin>, RawQuery(query): RawQuery) -> Response {
    let [authority, address, token] = match parameters(query, ["authority", "address", "token"]) {
        Ok(parameters) => parameters,
        Err(reason) => return refused(StatusCode::BAD_REQUEST, &reason),
    };
    let address = address.and_then(|address| address.parse::<IpAddr>().ok());
    let (Some(authority), Some(address)) = (authority, address) else {
        let reason = "expected authority=web.shop.svc.cluster.local:80 and address=10.1.0.4";
        return refused(StatusCode::BAD_REQUEST, reason);
    };
    let token = token.unwrap_or_default();
    let explain = async |it: Destination| {
        let mut explanation = it.explain(&authority, &token, address).await?;
        let known = admin.situation.links();
        for link in &mut explanation.links {
            if let Some(known) = known.iter().find(|known| known.cluster == link.cluster) {
                known.state.clone_into(&mut link.state);
                link.reason.clone_from(&known.reason);
            }
        }
        Ok(explanation)
    };
    explained(&admin, explain).await
}

/// `/explain/profile?authority=A[&token=T]`: why a profile is what it is, as JSON.
async fn explain_profile(State(admin): State<Admin>, RawQuery(query): RawQuery) -> Response {
    let [authority, token] = match parameters(query, ["authority", "token"]) {
        Ok(parameters) => parameters,
        Err(reason) => return refused(StatusCode::BAD_REQUEST, &reason),
    };
    let Some(authority) = authority else {
        let reason = "expected authority=web.shop.svc.cluster.local:80 or authority=10.1.0.4:8080";
        return refused(StatusCode::BAD_REQUEST, reason);
    };
    let token = token.unwrap_or_default();
    explained(&admin, async |it| it.explain_profile(&authority, &token).await).await
}

/// The values of these parameters, the last of each; there are no others.
fn parameters<const N: usize>(
    query: Option<String>,
    names: [&str; N],
) -> Result<[Option<String>; N], String> {
    let mut values = [const { None }; N];
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match names.iter().position(|known| *known == name) {
            Some(at) => values[at] = Some(value.into_owned()),
            None => return Err(format!("{name:?} is no parameter; use {}", names.join(", "))),
        }
    }
    Ok(values)
}

/// What the service explains, as JSON; one explanation at a time.
async fn explained<E: serde::Serialize>(
    admin: &Admin,
    explain: impl AsyncFnOnce(Destination) -> Result<E, Status>,
) -> Response {
    let Some(destination) = admin.situation.destination() else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "the store is being opened");
    };
    // The semaphore is never closed.
    let _permit = admin.explaining.acquire().await.ok();
    match explain(destination).await {
        Ok(explanation) => match serde_json::to_string(&explanation) {
            Ok(body) => ([(CONTENT_TYPE, "application/json")], body + "\n").into_response(),
            Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        },
        Err(status) if status.code() == Code::InvalidArgument => {
            refused(StatusCode::BAD_REQUEST, status.message())
        }
        Err(status) => refused(StatusCode::SERVICE_UNAVAILABLE, status.message()),
    }
}

fn refused(code: StatusCode, reason: &str) -> Response {
    (code, format!("{reason}\n")).into_response()
}

#[cfg(test)]
mod tests;
