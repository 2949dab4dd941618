//! `cargo demo`: Tollgate, a toy application and a real Envoy between them. Three callers send a burst each, and every
//! answer is printed. Everything listens on loopback, on ports that are free, and is gone at the end.

mod burst;
mod child;
mod envoy;
mod envoy_binary;
mod envoy_config;
mod http;
mod stage;
mod table;
mod tollgate;
mod upstream;

use std::env;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::signal::unix::{SignalKind, signal};

/// Set by Ctrl-C, or when the terminal goes: the demo then ends at its next step, so that everything is put away as at any other end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The demo also is Tollgate, when its first argument says so: one program to build, and still a process of its own.
fn main() -> ExitCode {
    if env::args_os().nth(1).is_some_and(|argument| argument == "tollgate") {
        return ::tollgate::cli::main(env::args_os().skip(1));
    }
    thread::spawn(listen_for_signals);
    match stage::Stage::set().and_then(|stage| burst::all(&stage)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if INTERRUPTED.load(Ordering::SeqCst) => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether to go on.
fn go_on() -> Result<(), String> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err("interrupted".into()) } else { Ok(()) }
}

fn listen_for_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        INTERRUPTED.store(true, Ordering::SeqCst);
        Ok(())
    })
}
