//! Caches against a model: a list in the order of use (LRU).

use callgate::json::json;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::caches::{get, put, space};
use super::limit_model::config;
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Get(u8),
    Put(u8),
    Clear,
    /// A reload with other rules.
    Resize(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..8_u8).prop_map(Step::Get),
        10 => (0..8_u8).prop_map(Step::Put),
        1 => Just(Step::Clear),
        2 => (0..6_usize).prop_map(Step::Resize),
    ]
}

pub fn keeps_the_most_recently_used(new: &New) {
    let property = |steps: Vec<Step>| {
        let store = new();
        let mut holds = 4;
        // The least recently used entry comes first.
        let mut model: Vec<(u8, usize)> = Vec::new();
        let evict_least_recent = |model: &mut Vec<(u8, usize)>, holds| {
            model.drain(..model.len().saturating_sub(holds));
        };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Get(key) => {
                    evict_least_recent(&mut model, holds);
                    let found =
                        model.iter().position(|(other, _)| *other == key).map(|place| model.remove(place));
                    model.extend(found);
                    let expected = found.map(|(_, output)| json!(output));
                    prop_assert_eq!(get(&*store, 0, space("s", holds), &key.to_string()), expected);
                }
                Step::Put(key) => {
                    evict_least_recent(&mut model, holds);
                    model.retain(|(other, _)| *other != key);
                    model.push((key, number));
                    evict_least_recent(&mut model, holds);
                    put(&*store, 0, space("s", holds), &key.to_string(), json!(number), 60);
                }
                Step::Clear => {
                    model.clear();
                    run(store.cache_clear("s")).unwrap();
                }
                Step::Resize(max_entries) => holds = max_entries,
            }
        }
        Ok(())
    };
    TestRunner::new(config(300)).run(&prop::collection::vec(any_step(), 1..80), property).unwrap();
}
