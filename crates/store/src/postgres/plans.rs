//! How the server goes about the statements of the hot path, on tables that it knows nothing of: they were filled behind
//! the back of its statistics. A plan that reads a table or an index from end to end is a plan that stands still one day.

use super::link::SESSION;
use super::scratch;
use super::statements::Statements;
use std::fmt::Write;
use tokio_postgres::Client;

const JOBS: i64 = 200_000;

/// A schema of its own that nobody counts; `None` without a PostgreSQL.
async fn uncounted(name: &str) -> Option<Client> {
    let (client, _) = scratch::schema(name).await?;
    // Nobody counts behind our back.
    for table in ["live", "lane", "job", "event"] {
        client.batch_execute(&format!("ALTER TABLE {table} SET (autovacuum_enabled = false)")).await.unwrap();
    }
    Some(client)
}

/// Full lanes of one, and what waits in them.
async fn fill(client: &Client) {
    let sql = format!(
        "INSERT INTO lane (org, key, max, running, waiting, outside, burst) \
         SELECT 'default', 'project:p' || n, 1, 1, {JOBS} / 1000, 0, 0 FROM generate_series(0, 999) n; \
         INSERT INTO live (ord, org, id, project, type, version, priority, phase, state, due_at, attempts, max_attempts, \
         token, wakes, created_at, has_deadline, head_n, head_hash, head_at, class, slot, since, lane, max_failures) \
         SELECT n, 'default', gen_random_uuid(), 'p' || n % 1000, 'work', 1, 100, 1, 'queued', n, 0, 5, 0, 0, n, false, 1, \
         sha256('x'), n, 0, 1, n, 'project:p' || n % 1000, 5 FROM generate_series(1, {JOBS}) n; \
         INSERT INTO job (org, id, project, type, version, priority, payload, created_at, max_attempts) \
         SELECT org, id, project, type, version, priority, '{{}}', created_at, 5 FROM live; \
         INSERT INTO event (org, pos, subject, n, at, kind, actor, data, hash) \
         SELECT org, ord, id, 1, created_at, 'job.queued', 'api', '{{}}', head_hash FROM live"
    );
    client.batch_execute(&sql).await.unwrap();
}

/// The plan that a connection keeps, whatever the statement is given.
async fn plan(client: &Client, name: &str, sql: &str) -> String {
    client.batch_execute(&format!("PREPARE {name} AS {sql}")).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let types = "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = $1";
    let params: i32 = client.query_one(types, &[&name]).await.unwrap().get(0);
    let given = vec!["NULL"; usize::try_from(params).unwrap()].join(", ");
    let given = if given.is_empty() { given } else { format!("({given})") };
    let mut text = String::new();
    for row in client.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE {name}{given}")).await.unwrap() {
        if let tokio_postgres::SimpleQueryMessage::Row(row) = row {
            writeln!(text, "{}", row.get(0).unwrap()).unwrap();
        }
    }
    text
}

/// Indexes that may be read from one end: they hold only what is wanted, and a limit says how much of it.
const READ_FROM_ONE_END: [&str; 5] = ["live_scheduled", "once_expiry", "message_expiry", "lane_pkey", "doc_paused"];

/// What cleans up now and then may read a table from end to end.
const SELDOM: [&str; 1] = ["purge_lanes"];

/// Lines of a plan that read more than was asked for.
fn wasteful(plan: &str) -> Vec<String> {
    let lines: Vec<&str> = plan.lines().collect();
    let tables = ["live", "lane", "job", "event", "doc", "once"];
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if ["Seq Scan", "Hash Join", "Merge Join", "Bitmap"].iter().any(|word| line.contains(word)) {
            found.push((*line).to_owned());
        }
        let Some((_, read)) = line.split_once("Scan using ") else { continue };
        let mut words = read.split(' ');
        let (index, table) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        let bounded = lines.get(at + 1).is_some_and(|next| next.contains("Index Cond"));
        if tables.contains(&table) && !bounded && !READ_FROM_ONE_END.contains(&index) {
            found.push((*line).to_owned());
        }
    }
    found
}

/// For each scan of this index whether it is bounded by the type of the jobs. But for one that asks whether anything waits.
fn by_type(plan: &str, index: &str) -> Vec<bool> {
    let scans = plan.lines().zip(plan.lines().skip(1)).filter(|(line, _)| line.contains(&format!(" {index} ")));
    let asks = |cond: &str| cond.contains("needs") && !cond.contains("org") && !cond.contains("type");
    scans.filter(|(_, cond)| !asks(cond)).map(|(_, cond)| cond.contains("type")).collect()
}

#[tokio::test]
async fn no_statement_reads_more_than_it_was_asked_for_whatever_the_server_believes() {
    let schema = format!("plans_{}", std::process::id());
    let Some(client) = uncounted(&schema).await else { return };
    client.batch_execute(SESSION).await.unwrap();
    // Made while the tables are empty, when they are full, and once they have been counted.
    for filled in ["empty", "full", "counted"] {
        match filled {
            "full" => fill(&client).await,
            "counted" => client.batch_execute("ANALYZE").await.unwrap(),
            _ => {}
        }
        for (name, sql) in Statements::texts().into_iter().filter(|(name, _)| !SELDOM.contains(name)) {
            let plan = plan(&client, &format!("{name}_{filled}"), &sql).await;
            let found = wasteful(&plan);
            assert!(found.is_empty(), "{name}, {filled}: {found:#?}\n{plan}");
            // Of no use without a project, though a table that looks empty makes it look as good as the primary key.
            assert!(!plan.contains("job_by_project"), "{name}, {filled}: {plan}");
            if ["walk", "named", "successors"].contains(&name) {
                assert!(name != "walk" || plan.contains("lane_door"), "{filled}: {plan}");
                let (by_type, oldest) = (by_type(&plan, "live_ready"), by_type(&plan, "live_aging"));
                assert!(
                    by_type.len() >= if name == "successors" { 2 } else { 3 } && by_type.iter().all(|by| *by),
                    "{name}, {filled}: {plan}"
                );
                assert!(oldest == [true], "{name}, {filled}: {plan}");
            }
        }
    }
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}
