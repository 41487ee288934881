//! HTTP: what monitoring asks of the server.

mod health;
mod metrics;

use std::sync::Arc;

use axum::{Router, routing::get};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::Server;

/// Serves until `shutdown`; requests that are being answered are finished.
pub async fn serve(
    listener: TcpListener,
    server: Arc<Server>,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(health::get))
        .route("/metrics", get(metrics::get))
        .with_state(server);
    axum::serve(listener, router)
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await
}
