use std::cell::Cell;
use std::collections::BTreeSet;

use super::*;
use crate::policy::build_texts;

/// Looks a name up. Returns whether its chain had to be built.
fn links(cache: &ToolPolicyCache, server: &str, tool: &str) -> bool {
    let policies = build_texts([("a.yaml", "policies: []")]).policies.unwrap();
    let is_built = Cell::new(false);
    cache.get_or_build(server, tool, || {
        is_built.set(true);
        policies.build_tool_policies(server, tool)
    });
    is_built.get()
}

#[test]
fn caches_by_server_and_tool() {
    let cache = ToolPolicyCache::default();
    for (server, tool) in [("", "a"), ("s", "a"), ("s", ""), ("", "s"), ("", "")] {
        assert!(links(&cache, server, tool), "{server} {tool}");
        assert!(!links(&cache, server, tool), "{server} {tool}");
    }
}

#[test]
fn invented_names_do_not_evict_tools_in_use() {
    let cache = ToolPolicyCache::default();
    let policies = build_texts([("a.yaml", "policies: []")]).policies.unwrap();
    let tools: Vec<String> = (0..64).map(|number| format!("tool{number}")).collect();
    for tool in &tools {
        assert!(links(&cache, "", tool));
    }
    for number in 0..10 * BUCKET_COUNT * BUCKET_CAPACITY {
        if number % 1000 == 0 {
            for tool in &tools {
                cache.get_or_build("", tool, || panic!("{tool} was evicted after {number}"));
            }
        }
        let invented = format!("invented{number}");
        cache.get_or_build("", &invented, || policies.build_tool_policies("", &invented));
    }
}

#[test]
fn cache_is_bounded_and_holds_the_newest_name() {
    let cache = ToolPolicyCache::default();
    for number in 0..3 * BUCKET_COUNT * BUCKET_CAPACITY {
        let name = format!("tool{number}");
        assert!(links(&cache, "", &name));
        assert!(!links(&cache, "", &name));
    }
    let mut names = BTreeSet::new();
    cache.for_each_name(|_, tool| assert!(names.insert(tool.to_owned()), "{tool} twice"));
    assert!(names.len() <= BUCKET_COUNT * BUCKET_CAPACITY);
}

#[test]
fn tools_with_the_same_policies_share_them_also_by_invented_names() {
    let rules = "
        policies:
          - { id: all, match: \"*\", deny: {} }
          - { id: some, match: pay, approval: {} }
          - { id: results, match: read, cache: { ttl: 1m, invalidate_on: [write] } }";
    let policies = build_texts([("a.yaml", rules)]).policies.unwrap();
    let of = |tool| policies.tool_policies("", tool);
    assert!(Arc::ptr_eq(&of("invented1"), &of("invented2")));
    for other in ["pay", "read", "write"] {
        assert!(!Arc::ptr_eq(&of(other), &of("invented1")), "{other}");
    }
}
