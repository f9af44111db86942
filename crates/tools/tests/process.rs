//! Programs that behave, and programs that do everything else.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is a test")]

use baton_tools::process::{Call, Class, Declaration, Options, Processes, ToolFailure, limits};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// The example beside the tests: `cargo test` builds it, unless it is told which tests to build.
fn binary() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here.parent().and_then(Path::parent).unwrap().join("examples/process");
    assert!(binary.exists(), "build it: cargo build -p baton-tools --examples");
    binary
}

fn processes() -> Processes {
    Processes::new(Options { keeper: binary(), ..Options::default() })
}

fn call(input: &Value) -> Call<'_> {
    let timeout = Duration::from_secs(30);
    Call { input, timeout, run: None, agent: None, step: None, attempt: 1, key: None }
}

fn sh(script: &str) -> Value {
    json!({ "argv": ["/bin/sh", "-c", script] })
}

async fn run(declared: Value, call: &Call<'_>) -> Result<Value, ToolFailure> {
    let declared: Declaration = serde_json::from_value(declared).unwrap();
    processes().call(&declared.check().unwrap(), call, std::future::pending()).await
}

async fn failure(declared: Value) -> ToolFailure {
    run(declared, &call(&json!({}))).await.unwrap_err()
}

async fn late(script: &str, timeout_ms: u64) -> ToolFailure {
    let timeout = Duration::from_millis(timeout_ms);
    run(sh(script), &Call { timeout, ..call(&json!({})) }).await.unwrap_err()
}

/// A number that no other test uses, for programs that are to be found again in the list of processes.
fn mark(line: u32) -> String {
    format!("{}.{line}", 86_400 + std::process::id())
}

fn alive(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap();
    let lines = all.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    let sleep = format!("sleep\0{mark}\0");
    lines.filter(|line| line.ends_with(sleep.as_bytes())).count()
}

/// Nobody tells when a process of somebody else's comes or goes: it is looked for, for a bounded time.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "{what} never came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_goes_in_comes_out() {
    let input = json!({"text": "ä\u{0}\n", "n": [1, 2.5, null]});
    assert_eq!(run(json!({"argv": ["cat"]}), &call(&input)).await.unwrap(), input);
}

#[tokio::test]
async fn a_program_knows_what_it_was_told_and_nothing_else() {
    let told = Call {
        run: Some("r1"),
        agent: Some("a1"),
        step: Some("s1"),
        attempt: 3,
        key: Some("k\0ey"),
        ..call(&Value::Null)
    };
    let script =
        r#"cat >/dev/null; printf '"'; env | grep -v '^_=' | sort | tr '\n' ' '; pwd | tr -d '\n'; printf '"'"#;
    let mut declared = sh(script);
    declared["env"] = json!({"A": "1"});
    declared["cwd"] = json!("/usr");
    let environment = "A=1 BATON_AGENT_ID=a1 BATON_ATTEMPT=3 BATON_IDEMPOTENCY_KEY=key BATON_RUN_ID=r1 BATON_STEP=s1 \
                       PATH=/usr/local/bin:/usr/bin:/bin PWD=/usr /usr";
    assert_eq!(run(declared, &told).await.unwrap(), json!(environment));
}

#[tokio::test]
async fn a_program_has_three_files_a_session_and_limits() {
    // A file that is open for heirs: only a shell lets one out of its hands like that.
    let script = r#"ls /proc/self/fd | wc -l; ulimit -c; ulimit -n; ulimit -v; ulimit -f"#;
    let inner = format!("printf '['; ({script}) | paste -sd,; printf ']'");
    let output = Command::new("/bin/sh")
        .args(["-c", "exec 7</dev/null; exec \"$@\"", "sh"])
        .arg(binary())
        .args(["30000", "/bin/sh", "-c", &inner])
        .output()
        .unwrap();
    // `ls` has opened the directory. `-v` counts in KiB and `-f` in blocks of 512 bytes.
    let blocks = limits::FILE_MB * 2048;
    let expected = format!("[4,0,{},{},{blocks}]\n", limits::OPEN_FILES, limits::MEMORY_MB * 1024);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", String::from_utf8_lossy(&output.stderr));
    let session = r#"read -r _ _ _ _ group session _ </proc/self/stat; echo "[$group,$session]""#;
    let numbers = run(sh(&format!("echo $$ >/dev/null; {session}")), &call(&json!({}))).await.unwrap();
    assert_eq!(numbers[0], numbers[1], "it leads a session of its own");
}

#[tokio::test]
async fn one_that_takes_too_long_is_asked_to_end_and_then_made_to() {
    let asked = late("trap 'exit 0' TERM; sleep 60 & wait", 200).await;
    assert_eq!((asked.code.as_ref(), asked.class, asked.may_have_acted), ("timeout", Class::Transient, true));
    let begin = Instant::now();
    let mark = mark(line!());
    let deaf = late(&format!("trap '' TERM; sleep {mark}; sleep {mark}"), 200).await;
    assert_eq!(deaf.code, "timeout");
    let took = begin.elapsed();
    assert!(took >= limits::GRACE && took < limits::GRACE + Duration::from_secs(4), "{took:?}");
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn one_that_is_stopped_or_has_closed_everything_still_ends() {
    assert_eq!(late("kill -STOP $$", 200).await.code, "timeout");
    assert_eq!(late("exec >&- 2>&- <&-; sleep 60", 200).await.code, "timeout");
    let quiet = failure(sh("exec >&- 2>&- <&-; exit 0")).await;
    assert_eq!(quiet.code, "invalid_output");
}

#[tokio::test]
async fn no_descendant_is_left_whatever_it_did_to_get_away() {
    let mark = mark(line!());
    let away = format!(
        "setsid sh -c 'trap \"\" TERM HUP; setsid sleep {mark} & setsid sleep {mark} & sleep {mark}' & \
         (sleep {mark} &) ; sh -c 'sleep {mark} & exit' & "
    );
    let wait = format!("while [ $(grep -slxz {mark} /proc/[0-9]*/cmdline | wc -l) -lt 5 ]; do :; done; ");
    assert_eq!(run(sh(&format!("{away}{wait} echo 1")), &call(&json!({}))).await.unwrap(), json!(1));
    assert_eq!(alive(&mark), 0, "after a good end");
    assert_eq!(failure(sh(&format!("{away}{wait} exit 3"))).await.code, "tool_crashed");
    assert_eq!(alive(&mark), 0, "after a bad end");
    assert_eq!(late(&format!("{away}{wait} sleep {mark}"), 1_000).await.code, "timeout");
    assert_eq!(alive(&mark), 0, "after a timeout");
}

#[tokio::test]
async fn one_that_flees_from_child_to_child_is_caught() {
    let begin = Instant::now();
    let fleeing = "flee() { : >/dev/null; flee & exit; }; flee & flee & echo 1";
    assert_eq!(run(sh(fleeing), &call(&json!({}))).await.unwrap(), json!(1));
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_keeper_that_does_not_listen_is_given_up() {
    let mark = mark(line!());
    let begin = Instant::now();
    assert_eq!(late(&format!("cat >/dev/null; kill -STOP $PPID; sleep {mark}; true"), 200).await.code, "timeout");
    assert!(begin.elapsed() < limits::STOPPED + Duration::from_secs(3), "{:?}", begin.elapsed());
    until("its end", || alive(&mark) == 0).await;
}

#[tokio::test]
async fn a_cancelled_call_ends_the_program() {
    let mark = mark(line!());
    let declared: Declaration = serde_json::from_value(sh(&format!("sleep {mark}; true"))).unwrap();
    let process = declared.check().unwrap();
    let begun = until("the program", || alive(&mark) > 0);
    let failure = processes().call(&process, &call(&json!({})), begun).await.unwrap_err();
    assert_eq!((failure.code.as_ref(), failure.may_have_acted), ("cancelled", true));
    assert_eq!(alive(&mark), 0);
    let failure = processes().call(&process, &call(&json!({})), async {}).await.unwrap_err();
    assert_eq!(failure.code, "cancelled");
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_the_program() {
    let mark = mark(line!());
    let script = format!("setsid sleep {mark} & sleep {mark}; true");
    tokio::select! {
        _ = failure(sh(&script)) => panic!("it sleeps"),
        () = until("the program", || alive(&mark) == 2) => {}
    }
    until("its end", || alive(&mark) == 0).await;
}

#[tokio::test]
async fn nothing_outlives_a_server_that_is_killed() {
    let mark = mark(line!());
    let script = format!("trap '' TERM HUP; setsid sleep {mark} & sleep {mark}; true");
    let mut server = Command::new(binary())
        .args(["60000", "/bin/sh", "-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the program", || alive(&mark) == 2).await;
    server.kill().unwrap();
    server.wait().unwrap();
    let begin = Instant::now();
    until("its end", || alive(&mark) == 0).await;
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_program_whose_keeper_is_killed_dies_too() {
    let mark = mark(line!());
    let failure = failure(sh(&format!("cat >/dev/null; sleep {mark} & kill -KILL $PPID; sleep {mark}; true"))).await;
    assert_eq!((failure.code.as_ref(), failure.class), ("keeper_lost", Class::Transient));
    until("its end", || alive(&mark) == 0).await;
}

#[tokio::test]
async fn a_large_input_is_read_or_not() {
    let input = json!("x".repeat(4 * 1024 * 1024));
    let count = run(json!({"argv": ["/usr/bin/wc", "-c"]}), &call(&input)).await.unwrap();
    assert_eq!(count, json!(4 * 1024 * 1024 + 2));
    assert_eq!(run(sh("echo 7"), &call(&input)).await.unwrap(), json!(7), "it reads nothing");
    let timeout = Duration::from_millis(200);
    let slow = run(sh("sleep 60"), &Call { timeout, ..call(&input) }).await.unwrap_err();
    assert_eq!(slow.code, "timeout");
    let over = run(sh("echo 7"), &call(&json!("x".repeat(limits::INPUT_BYTES)))).await.unwrap_err();
    assert_eq!((over.code.as_ref(), over.may_have_acted), ("tool_input_too_large", false));
}

#[tokio::test]
async fn output_without_an_end_is_not_read_to_its_end() {
    let endless = failure(json!({"argv": ["/usr/bin/yes"]})).await;
    assert_eq!((endless.code.as_ref(), endless.class), ("output_too_large", Class::Deterministic));
    let exact = r#"printf '"%1022s"' x"#;
    let mut declared = sh(exact);
    declared["output_kb"] = json!(1);
    assert!(run(declared, &call(&json!({}))).await.is_ok());
    let mut declared = sh(&format!("{exact}; echo"));
    declared["output_kb"] = json!(1);
    assert_eq!(failure(declared).await.code, "output_too_large");
}

#[tokio::test]
async fn a_crash_is_told_with_the_last_words() {
    let failure = failure(sh("yes noise | head -c 300000 >&2; echo 'the reason' >&2; exit 3")).await;
    assert_eq!((failure.code.as_ref(), failure.class), ("tool_crashed", Class::Deterministic));
    assert!(failure.message.ends_with("the reason") && failure.message.len() < 2_200, "{}", failure.message);
    let signal = self::failure(sh("kill -SEGV $$")).await;
    assert_eq!((signal.code.as_ref(), signal.may_have_acted), ("tool_crashed", true));
}

#[tokio::test]
async fn output_that_is_not_json_is_no_result() {
    let failure = failure(sh("echo hello")).await;
    assert_eq!((failure.code.as_ref(), failure.class), ("invalid_output", Class::Deterministic));
}

#[tokio::test]
async fn one_that_is_limited_says_so_by_its_exit_or_in_words() {
    let exit = failure(sh("exit 75")).await;
    assert_eq!((exit.code.as_ref(), exit.class, exit.retry_after), ("rate_limited", Class::Transient, None));
    let words = failure(sh(r#"echo '{"error":{"code":"rate_limited","retry_after_ms":250}}'"#)).await;
    assert_eq!((words.code.as_ref(), words.retry_after), ("rate_limited", Some(Duration::from_millis(250))));
}

#[tokio::test]
async fn what_is_missing_is_told_from_what_crashed() {
    let script = std::env::temp_dir().join(format!("baton-tools-{}", mark(line!())));
    std::fs::write(&script, "no program").unwrap();
    for (declared, acted) in [
        (json!({"argv": ["/not/there"]}), false),
        (json!({"argv": [script]}), false),
        (json!({"argv": ["/usr"]}), false),
        (json!({"argv": ["/bin/cat"], "cwd": "/not/there"}), false),
        (sh("exec /not/there"), true),
        (sh("echo \"ModuleNotFoundError: No module named 'x'\" >&2; exit 1"), true),
    ] {
        let failure = failure(declared.clone()).await;
        let got = (failure.code.as_ref(), failure.class, failure.may_have_acted);
        assert_eq!(got, ("dependency_missing", Class::Deterministic, acted), "{declared}: {failure}");
    }
    std::fs::remove_file(script).unwrap();
}

#[tokio::test]
async fn one_that_wants_too_much_memory_is_out_of_it() {
    let hog = failure(json!({"argv": [binary(), "hog"], "memory_mb": 128})).await;
    assert_eq!((hog.code.as_ref(), hog.class), ("out_of_memory", Class::Transient), "{hog}");
    let killed = failure(sh("kill -KILL $$")).await;
    assert_eq!(killed.code, "out_of_memory");
}

#[tokio::test]
async fn a_file_that_grows_too_large_ends_the_program() {
    let file = std::env::temp_dir().join(format!("baton-tools-{}", mark(line!())));
    let mut declared = sh(&format!("exec head -c 2000000 /dev/zero >{}", file.display()));
    declared["file_mb"] = json!(1);
    let failure = failure(declared).await;
    std::fs::remove_file(file).unwrap();
    assert_eq!((failure.code.as_ref(), failure.class), ("file_too_large", Class::Deterministic), "{failure}");
}

#[tokio::test]
async fn a_failure_in_the_programs_own_words_is_passed_on() {
    let words = r#"{"error":{"code":"no_such_order","message":"order 7","class":"fatal"}}"#;
    let failure = failure(sh(&format!("echo '{words}'; exit 1"))).await;
    let got = (failure.code.as_ref(), failure.message.as_str(), failure.class);
    assert_eq!(got, ("no_such_order", "order 7", Class::Fatal));
}

#[tokio::test]
async fn without_a_keeper_nothing_is_started() {
    let nobody = Processes::new(Options { keeper: "/not/there".into(), ..Options::default() });
    let process = serde_json::from_value::<Declaration>(sh("echo 1")).unwrap().check().unwrap();
    let failure = nobody.call(&process, &call(&json!({})), std::future::pending()).await.unwrap_err();
    assert_eq!(
        (failure.code.as_ref(), failure.class, failure.may_have_acted),
        ("not_started", Class::Transient, false)
    );
    let wrong = Processes::new(Options { keeper: "/bin/true".into(), ..Options::default() });
    let failure = wrong.call(&process, &call(&json!({})), std::future::pending()).await.unwrap_err();
    assert_eq!(failure.code, "keeper_lost");
}

#[tokio::test]
async fn who_finds_no_place_waits_no_longer_than_it_may() {
    let one = Processes::new(Options { keeper: binary(), max_at_once: 1 });
    let declared = |script| serde_json::from_value::<Declaration>(sh(script)).unwrap().check().unwrap();
    let (slow, quick, input) = (declared("sleep 1; echo 1"), declared("echo 2"), json!({}));
    let (patient, hasty) = (call(&input), Call { timeout: Duration::from_millis(100), ..call(&input) });
    let (first, second, third) = tokio::join!(
        one.call(&slow, &patient, std::future::pending()),
        one.call(&quick, &hasty, std::future::pending()),
        one.call(&quick, &patient, std::future::pending()),
    );
    assert_eq!((first.unwrap(), third.unwrap()), (json!(1), json!(2)));
    let failure = second.unwrap_err();
    assert_eq!((failure.code.as_ref(), failure.may_have_acted), ("timeout", false));
}
