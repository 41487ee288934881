//! The `highwater` program: arguments, logs, runtime, exit code.

mod bench_formats;
mod cli;
mod restore;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Context;
use clap::Parser;
use highwater_repl::{DemoOptions, Endpoint, OutputFormat, ReplOptions};
use highwater_server::{Addresses, Listeners, config::Config, run, telemetry};
use highwater_storage_log::tools;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

use cli::{Bench, Cli, Command, DemoArgs, Output, SqlArgs, StartArgs};

/// Exit code when settings are wrong or the server cannot start, as sysexits(3) does not have one that fits better.
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => start(cli.start),
        Some(Command::Start(args)) => start(args),
        Some(Command::Sql(args)) => sql(args),
        Some(Command::Demo(args)) => demo(args),
        Some(Command::TestRunner(args)) => highwater_test_runner::run(&args),
        Some(Command::Restore(args)) => restore::run(&args),
        Some(Command::Log(command)) => tools::run(&command).map_err(Into::into),
        Some(Command::Bench(Bench::Log(args))) => tools::bench::run(&args).map_err(Into::into),
        Some(Command::Bench(Bench::Formats(args))) => bench_formats::run(&args),
        Some(Command::Bench(Bench::Nexmark(args))) => highwater_bench::nexmark(&args),
        Some(Command::Bench(Bench::Latency(args))) => highwater_bench::latency(&args),
        Some(Command::Bench(Bench::Steps(args))) => highwater_bench::steps(&args),
    };
    outcome.unwrap_or_else(|error| {
        // Errors tell one level each; the line shows them all.
        eprintln!("highwater: {error:#}");
        ExitCode::from(EXIT_FAILURE)
    })
}

fn start(args: StartArgs) -> anyhow::Result<ExitCode> {
    let config = args.into_config()?;
    telemetry::init_logs(&config.log_level).context("log_level cannot be read")?;
    runtime()?.block_on(async {
        let shutdown = CancellationToken::new();
        stop_on_signals(shutdown.clone())?;
        let listeners = Listeners::bind(&config).await?;
        let addresses = listeners.addresses()?;
        let data = config.data.display().to_string();
        run(config, listeners, shutdown, move || {
            banner(addresses, &data)
        })
        .await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// SIGTERM and Ctrl-C stop the server cleanly; a second one ends the process at once.
fn stop_on_signals(shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping; a second signal ends the process at once");
        shutdown.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(130);
    });
    Ok(())
}

fn banner(addresses: Addresses, data: &str) {
    let endpoint = endpoint_of(addresses);
    let banner = format!(
        "Highwater {} is ready.\n\n  connect   {}\n  shell     highwater sql --port {}\n  metrics   http://{}/metrics\n  data      {data}\n\n",
        env!("CARGO_PKG_VERSION"),
        endpoint.psql_command(),
        addresses.sql.port(),
        addresses.http,
    );
    // A closed standard output is no reason not to serve.
    let _ = io::stdout()
        .write_all(banner.as_bytes())
        .and_then(|()| io::stdout().flush());
}

fn endpoint_of(addresses: Addresses) -> Endpoint {
    let address = addresses.sql;
    let host = if address.ip().is_unspecified() {
        "127.0.0.1".to_owned()
    } else {
        address.ip().to_string()
    };
    Endpoint {
        host,
        port: address.port(),
        ..Endpoint::default()
    }
}

fn sql(args: SqlArgs) -> anyhow::Result<ExitCode> {
    let options = ReplOptions {
        endpoint: Endpoint {
            host: args.host,
            port: args.port,
            user: args.user,
            database: args.database,
            ..Endpoint::default()
        },
        statements: args.statements,
        format: match args.output {
            Output::Table => OutputFormat::Table,
            Output::Json => OutputFormat::Json,
            Output::Csv => OutputFormat::Csv,
        },
    };
    runtime()?.block_on(highwater_repl::run(options))
}

fn demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    // The demonstration has the terminal; only what is wrong may write over it.
    telemetry::init_logs("error").context("logs cannot be set up")?;
    runtime()?.block_on(async {
        let folder = tempfile::Builder::new()
            .prefix("highwater-demo-")
            .tempdir()
            .context("no temporary folder")?;
        let config = demo_config(folder.path())?;
        let listeners = Listeners::bind(&config).await?;
        let addresses = listeners.addresses()?;
        let shutdown = CancellationToken::new();
        let (ready, is_ready) = oneshot::channel();
        let server = tokio::spawn(run(config, listeners, shutdown.clone(), move || {
            let _ = ready.send(());
        }));
        if is_ready.await.is_err() {
            server.await??;
            anyhow::bail!("the server stopped before it was ready");
        }
        let mut options = DemoOptions::new(addresses.sql);
        options.seconds = args.seconds;
        if let Some(speed) = args.speed {
            options.speed = speed;
        }
        let played = highwater_repl::demo(options).await;
        let watched_to_the_end = played.as_ref().is_ok_and(|outcome| outcome.complete);
        if watched_to_the_end && args.seconds.is_none() && io::stdin().is_terminal() {
            println!("The server goes on until you press Ctrl-C; its data goes with it.");
            tokio::signal::ctrl_c()
                .await
                .context("cannot listen for Ctrl-C")?;
        }
        shutdown.cancel();
        server.await??;
        played?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Free ports and a folder that goes away.
fn demo_config(folder: &std::path::Path) -> anyhow::Result<Config> {
    let any_port = "127.0.0.1:0".parse()?;
    let settings = highwater_server::config::Settings {
        data: Some(folder.to_owned()),
        listen: Some(any_port),
        http_listen: Some(any_port),
        ..Default::default()
    };
    Ok(settings.validate()?)
}

fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .enable_all()
        .thread_name("io")
        .build()
        .context("cannot start threads")
}
