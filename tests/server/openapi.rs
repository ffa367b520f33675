//! The OpenAPI document.

use callgate::json;

use super::harness::RunningServer;

#[test]
fn the_document_in_schemas_is_current() {
    let document = format!("{}\n", json::to_string_pretty(&callgate_server::openapi_document()).unwrap());
    let path = crate::fixtures::root().join("schemas/openapi.json");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(known, document, "schemas/openapi.json is stale: run the tests with UPDATE_GENERATED=1");
}

#[tokio::test]
async fn every_documented_endpoint_is_served() {
    let server = RunningServer::new("policies: []").await;
    let document = server.send("GET", "/openapi.json", "", None).await.body;
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 12);
    for (path, operations) in paths {
        for method in operations.as_object().unwrap().keys() {
            let path: String = path.split('{').collect::<Vec<_>>().join("").replace('}', "");
            let reply =
                server.send_as(&server.token, &method.to_uppercase(), &path, Some(&json::json!({}))).await;
            assert_ne!(reply.status, 405, "{method} {path}");
            assert_ne!(
                reply.body["detail"], "there is no such endpoint; see /openapi.json",
                "{method} {path}"
            );
        }
    }
}
