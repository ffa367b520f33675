//! The sandboxed engine, shared by all expressions, and what it may know of the one evaluation that runs on a thread.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use regex::Regex;
use rhai::{Dynamic, Engine, EvalAltResult, OptimizationLevel};

use super::arithmetic::{BINARY, negate, not};
use super::convert::{MAX_NODES, MAX_TEXT};
use super::functions::{FUNCTIONS, Run, each};
use crate::call::Root;

/// Steps that one evaluation may take.
const MAX_STEPS: u64 = 1_000_000;
/// Wall time that one evaluation may take.
const DEADLINE: Duration = Duration::from_millis(250);
/// How deep an expression may nest, and how many operators may follow one another in a row.
const MAX_NESTING: usize = 48;
/// What a closure may nest.
const MAX_CLOSURE_NESTING: usize = 32;
/// Closures run inside one another at most so deep.
const MAX_CALLS: usize = 16;
/// How often the clock is looked at.
const STEPS_BETWEEN_LOOKS: u64 = 16;

/// The regexes that an expression writes out, compiled.
pub(super) type Regexes = Arc<BTreeMap<String, Regex>>;

/// The engine. Making one takes longer than thousands of evaluations, and it is never changed.
pub(super) static ENGINE: LazyLock<Engine> = LazyLock::new(build);

/// What an evaluation may know: the members of the call that it reads, and when it must be done.
struct Evaluation {
    roots: Vec<(Root, Dynamic)>,
    regexes: Regexes,
    steps: u64,
    deadline: Instant,
}

thread_local! {
    static CURRENT: RefCell<Option<Evaluation>> = const { RefCell::new(None) };
}

/// Evaluates on this thread, with these members of the call in reach.
pub(super) fn run<T>(roots: Vec<(Root, Dynamic)>, regexes: Regexes, evaluate: impl FnOnce() -> T) -> T {
    struct Clear;
    // Also when the evaluation panics: a later one must never see this call.
    impl Drop for Clear {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|current| *current = None);
        }
    }
    let deadline = Instant::now() + DEADLINE;
    CURRENT.with_borrow_mut(|current| *current = Some(Evaluation { roots, regexes, steps: 0, deadline }));
    let _clear = Clear;
    evaluate()
}

/// Whether a regex that the expression writes out matches somewhere in a text; nothing, if it is written nowhere.
pub(super) fn regex_matches(pattern: &str, text: &str) -> Option<bool> {
    // The map is shared, the regex in it not cloned: a clone starts without the memory that makes a search fast.
    let regexes =
        CURRENT.with_borrow(|current| current.as_ref().map(|current| Arc::clone(&current.regexes)))?;
    Some(regexes.get(pattern)?.is_match(text))
}

fn build() -> Engine {
    // Raw, and without any of Rhai's packages: they hold `sleep`, `eval`'s kin, functions that answer `()` or an empty
    // string where there is nothing, and comparisons that take values of different types for unequal.
    let mut engine = Engine::new_raw();
    // Folding constants would compare them by Rhai's own rules.
    engine.set_optimization_level(OptimizationLevel::None);
    // Fast operators are Rhai's own and never ask for those registered below.
    engine.set_fast_operators(false);
    engine.set_fail_on_invalid_map_property(true);
    engine.set_allow_looping(false);
    engine.set_allow_if_expression(false);
    engine.set_allow_switch_expression(false);
    engine.set_allow_statement_expression(false);
    engine.set_max_expr_depths(MAX_NESTING, MAX_CLOSURE_NESTING);
    engine.set_max_call_levels(MAX_CALLS);
    engine.set_max_operations(MAX_STEPS);
    // Not smaller than what an evaluation may read: Rhai checks the size of what a function is called on as well.
    engine.set_max_string_size(MAX_TEXT);
    engine.set_max_array_size(MAX_NODES);
    engine.set_max_map_size(MAX_NODES);
    engine.set_max_modules(0);
    engine.set_max_functions(64);
    engine.set_max_variables(64);
    for word in ["eval", "print", "debug", "switch", "import", "export", "fn", "let", "const", "in", "!in"] {
        engine.disable_symbol(word);
    }
    // `in` is Rhai's `contains`, which looks into arrays, objects and strings alike; ours are two.
    for operator in ["in", "!in"] {
        let registered = engine.register_custom_operator(operator, IN_PRECEDENCE);
        debug_assert!(registered.is_ok(), "{registered:?}");
    }
    name_types(&mut engine);
    register(&mut engine);
    engine.on_progress(|_| step());
    let_roots_be_read(&mut engine);
    engine
}

/// As Rhai's own `in`: tighter than `==`, looser than `<`.
const IN_PRECEDENCE: u8 = 110;

/// `type_of` is Rhai's own, whatever is registered under the name, and gives these names.
fn name_types(engine: &mut Engine) {
    engine
        .register_type_with_name::<()>("null")
        .register_type_with_name::<bool>("boolean")
        .register_type_with_name::<rhai::INT>("number")
        .register_type_with_name::<rhai::FLOAT>("number")
        .register_type_with_name_raw("map", "object");
}

fn register(engine: &mut Engine) {
    let any = TypeId::of::<Dynamic>();
    for (symbol, operator) in BINARY {
        engine.register_raw_fn(*symbol, [any, any], move |_, args| match args {
            [a, b] => Ok(operator(a, b)?),
            _ => Err(operands(symbol)),
        });
    }
    for (symbol, operator) in [("!", not as fn(&Dynamic) -> Result<Dynamic, String>), ("-", negate)] {
        engine.register_raw_fn(symbol, [any], move |_, args| match args {
            [a] => Ok(operator(a)?),
            _ => Err(operands(symbol)),
        });
    }
    for function in FUNCTIONS {
        let types = vec![any; function.parameters.len()];
        let name = function.name;
        match function.run {
            Run::One(run) => engine.register_raw_fn(name, types, move |_, args| match args {
                [a] => Ok(run(a)?),
                _ => Err(operands(name)),
            }),
            Run::Two(run) => engine.register_raw_fn(name, types, move |_, args| match args {
                [a, b] => Ok(run(a, b)?),
                _ => Err(operands(name)),
            }),
            Run::Each(how) => engine.register_raw_fn(name, types, move |context, args| match args {
                [list, closure] => each(how, &context, list, closure),
                _ => Err(operands(name)),
            }),
        };
    }
}

fn operands(name: &str) -> Box<EvalAltResult> {
    format!("`{name}` has the wrong number of operands").into()
}

/// Counts a step; something ends the evaluation. Counted here as well as by Rhai, which forgets what a closure took.
fn step() -> Option<Dynamic> {
    CURRENT.with_borrow_mut(|current| {
        let evaluation = current.as_mut()?;
        evaluation.steps += 1;
        let late = evaluation.steps % STEPS_BETWEEN_LOOKS == 0 && Instant::now() > evaluation.deadline;
        (late || evaluation.steps > MAX_STEPS).then_some(Dynamic::UNIT)
    })
}

#[expect(
    deprecated,
    reason = "marked so by Rhai only because it may change; a scope is no way out, see below"
)]
fn let_roots_be_read(engine: &mut Engine) {
    // Not from a scope: a closure that uses a variable of the scope puts it behind a lock, and then
    // `input.items.all(|item| item.price < input.limit)` fails, because the call of `all` holds that lock itself.
    engine.on_var(|name, _, _| {
        let Some(root) = Root::from_name(name) else { return Ok(None) };
        let value = CURRENT.with_borrow(|current| {
            let roots = &current.as_ref()?.roots;
            roots.iter().find(|(known, _)| *known == root).map(|(_, value)| value.clone())
        });
        match value {
            Some(value) => Ok(Some(value)),
            None if root.settle_only() => {
                Err(format!("`{name}` is there only once the call has settled").into())
            }
            None => Err(format!("the call has no `{name}`").into()),
        }
    });
}
