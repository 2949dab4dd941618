//! A real Envoy as a child process. Needs the sibling modules `child`, `envoy_binary` and `http`.
#![allow(dead_code, reason = "the demo and the tests use a part each")]

use super::child::{self, Running};
use super::envoy_binary;
use super::http::{Answer, Client};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

pub struct Envoy {
    running: Running,
    admin: SocketAddr,
}

impl Envoy {
    /// Runs the configuration and waits until the listeners are up.
    pub fn start(config_yaml: &str) -> Result<Self, String> {
        let binary = envoy_binary::find()?;
        let (folder, config) = child::folder("envoy", "envoy.yaml", config_yaml)?;
        let mut command = command(&binary, &config, folder.path())?;
        let mut running = Running::start("envoy", &mut command, folder)?;
        let admin = child::wait_until("envoy is ready", || ready(&mut running));
        let admin = admin.map_err(|error| format!("{error}\n{}", log(running.folder())))?;
        Ok(Self { running, admin })
    }

    /// The address of a listener, by its name in the configuration.
    pub fn listener(&self, name: &str) -> Result<SocketAddr, String> {
        let body = self.admin_get("/listeners?format=json")?.body;
        let all: serde_json::Value =
            serde_json::from_str(&body).map_err(|error| format!("envoy's listeners: {error}"))?;
        let found = all["listener_statuses"].as_array().into_iter().flatten().find(|listener| listener["name"] == name);
        let socket = found.map(|listener| &listener["local_address"]["socket_address"]);
        let address = socket.and_then(|socket| {
            let ip = socket["address"].as_str()?.parse().ok()?;
            Some(SocketAddr::new(ip, socket["port_value"].as_u64()?.try_into().ok()?))
        });
        address.ok_or_else(|| format!("envoy has no listener `{name}` on an IP address: {body}"))
    }

    /// Asks the admin side, such as `/stats?filter=ext_authz`.
    pub fn admin_get(&self, path: &str) -> Result<Answer, String> {
        Client::connect(self.admin)?.send("GET", path, &[])
    }

    /// What it says of the Tollgate at this address, such as `rq_total` or `health_flags`.
    pub fn stat<T: FromStr>(&self, tollgate: &str, name: &str) -> Result<T, String> {
        let start = format!("tollgate::{tollgate}::{name}::");
        let page = self.admin_get("/clusters")?.body;
        let value = page.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok());
        value.ok_or_else(|| format!("envoy says nothing of {start}\n{page}"))
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        log(self.running.folder())
    }
}

fn command(binary: &Path, config: &Path, folder: &Path) -> Result<Command, String> {
    let log = log_file(folder);
    let log = File::create(&log).map_err(|error| format!("{}: cannot create this file: {error}", log.display()))?;
    let mut command = Command::new(binary);
    command.arg("--config-path").arg(config).arg("--admin-address-path").arg(admin_file(folder));
    command.args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"]);
    command.args(["--file-flush-interval-msec", "50"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Ok(command)
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("envoy.log")
}

/// Where Envoy writes the admin address it chose.
fn admin_file(folder: &Path) -> PathBuf {
    folder.join("admin")
}

fn log(folder: &Path) -> String {
    fs::read_to_string(log_file(folder)).unwrap_or_default()
}

/// The admin address, once Envoy says that it is ready.
fn ready(running: &mut Running) -> Result<Option<SocketAddr>, String> {
    if let Some(status) = running.ended()? {
        return Err(format!("envoy ended before it was ready: {status}"));
    }
    let address = fs::read_to_string(admin_file(running.folder())).ok().and_then(|text| text.trim().parse().ok());
    Ok(address.filter(|&address| {
        Client::connect(address)
            .and_then(|mut admin| admin.send("GET", "/ready", &[]))
            .is_ok_and(|answer| answer.status == 200)
    }))
}
