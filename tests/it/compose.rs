//! `docker-compose.yml`, the Dockerfile, `envoy/envoy.yaml` and what they mount: they agree with each other.

mod files;
mod image;
mod run;

use files::{Mount, compose, envoy, mounts, option, root, service, text, yaml};
use serde_json::Value;
use std::path::Path;
use tollgate::config::{Config, ListenAddress};

/// What Tollgate is started with there.
fn tollgate_config() -> Config {
    Config::load(&root(&mounted_file("tollgate"))).unwrap_or_else(|error| panic!("{error}"))
}

/// The one file of the repository that a service mounts.
fn mounted_file(name: &str) -> String {
    mounts(name).iter().find_map(Mount::file).unwrap_or_else(|| panic!("{name} mounts no file"))
}

/// The port that a service listens on, by its own configuration.
fn port(name: &str) -> Value {
    if name != "tollgate" {
        return yaml(&mounted_file(name))["static_resources"]["listeners"][0]["address"]["socket_address"]["port_value"]
            .clone();
    }
    match tollgate_config().listen.grpc {
        ListenAddress::Tcp(address) => address.port().into(),
        ListenAddress::Unix(path) => panic!("no port: {}", path.display()),
    }
}

fn networks(name: &str) -> Vec<String> {
    serde_json::from_value(service(name)["networks"].clone()).unwrap()
}

#[test]
fn envoys_clusters_are_services_on_their_ports_and_a_shared_network() {
    assert_eq!(mounted_file("envoy"), "envoy/envoy.yaml");
    let envoy = envoy();
    for cluster in envoy["static_resources"]["clusters"].as_array().unwrap() {
        let endpoint = &cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"];
        let address = &endpoint["address"]["socket_address"];
        let name = text(&address["address"]);
        assert_eq!(address["port_value"], port(&name), "{name}");
        let shared: Vec<_> = networks(&name).into_iter().filter(|one| networks("envoy").contains(one)).collect();
        assert_eq!(shared.len(), 1, "{name}: {shared:?}");
        assert_eq!(compose()["networks"][&shared[0]]["internal"], true, "{name}");
    }
}

/// The configuration trusts whoever reaches Tollgate: that is Envoy alone.
#[test]
fn nobody_but_envoy_reaches_tollgate() {
    assert!(tollgate_config().listen.trusted_network);
    let [network] = &networks("tollgate")[..] else { panic!("not one network") };
    for (name, service) in compose()["services"].as_object().unwrap() {
        let is_near = service["networks"].as_array().is_some_and(|all| all.iter().any(|one| one == network));
        assert_eq!(is_near, name == "tollgate" || name == "envoy", "{name}");
        assert!(
            service["networks"].is_array() || service["network_mode"] == "none",
            "{name} is on the default network"
        );
        assert_eq!(service["ports"].is_array(), name == "envoy", "{name}");
    }
}

#[test]
fn the_published_port_is_envoys_and_the_one_in_the_curl_lines() {
    let ports = service("envoy")["ports"].clone();
    let listener = port("envoy");
    assert_eq!(ports, serde_json::json!([format!("127.0.0.1:8000:{listener}")]));
    assert_eq!(option("tokens", "--curl"), "http://localhost:8000/[1-6]");
}

/// Where `tokens` writes the JWKS is where Envoy reads it: one volume, the same name in it.
#[test]
fn envoy_reads_the_jwks_that_tokens_writes() {
    let volume = |service: &str, path: &Path| {
        let folder = path.parent().unwrap().to_str().unwrap();
        let mount = mounts(service).into_iter().find(|mount| mount.target == folder);
        mount.unwrap_or_else(|| panic!("{service} mounts nothing at {folder}"))
    };
    let envoy = envoy();
    let read = text(&provider(&envoy)["local_jwks"]["filename"]);
    let written = option("tokens", "--jwks");
    let (read, written) = (Path::new(&read), Path::new(&written));
    assert_eq!(read.file_name(), written.file_name());
    let (reading, writing) = (volume("envoy", read), volume("tokens", written));
    assert_eq!(reading.source, writing.source);
    assert!(compose()["volumes"].get(&writing.source).is_some(), "{} is not a volume", writing.source);
    assert!(reading.is_read_only && !writing.is_read_only);
    assert_eq!(volume("tokens", Path::new(&option("tokens", "--key"))).source, writing.source);
}

#[test]
fn tokens_and_tollgate_fit_envoys_provider() {
    let envoy = envoy();
    let provider = provider(&envoy);
    assert_eq!(provider["issuer"], option("tokens", "--iss"));
    assert_eq!(provider["audiences"], serde_json::json!([option("tokens", "--aud")]));
    let config = tollgate_config();
    assert!(config.token.payload.contains(&text(&provider["payload_in_metadata"])));
    assert_eq!(config.token.failure, text(&provider["failed_status_in_metadata"]));
    assert_eq!(filters(&envoy)[1]["typed_config"]["metadata_context_namespaces"][0], config.token.namespace);
}

fn filters(envoy: &Value) -> &Value {
    &envoy["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
}

fn provider(envoy: &Value) -> &Value {
    &filters(envoy)[0]["typed_config"]["providers"]["main"]
}

#[test]
fn services_start_in_order() {
    let conditions =
        [("tokens", "service_completed_successfully"), ("tollgate", "service_healthy"), ("app", "service_started")];
    let waits = service("envoy")["depends_on"].clone();
    assert_eq!(waits.as_object().unwrap().len() + 1, compose()["services"].as_object().unwrap().len());
    for (name, condition) in conditions {
        assert_eq!(waits[name]["condition"], condition, "{name}");
    }
}
