//! What the tables refuse by themselves: each way in which a job can stand or have ended, against what is said of it in words.

use super::scratch;
use tokio_postgres::Client;

/// Puts each combination into a table with the same conditions, and tells those where being taken is not what it should be.
async fn wrong(client: &Client, table: &str, values: &str, sound: &str) -> Vec<String> {
    let sql = format!(
        "CREATE TEMP TABLE tried (LIKE {table} INCLUDING CONSTRAINTS);
         DO $$ DECLARE c text; BEGIN
             FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 'tried'::regclass AND attnum > 0 AND attnotnull
             LOOP EXECUTE format('ALTER TABLE tried ALTER COLUMN %I DROP NOT NULL', c); END LOOP; END $$;
         CREATE TEMP TABLE wrong (what text);
         DO $$ DECLARE k record; taken boolean; BEGIN
             FOR k IN SELECT v.*, ({sound}) AS is_sound FROM ({values}) v LOOP
                 BEGIN
                     INSERT INTO tried SELECT (jsonb_populate_record(NULL::tried, to_jsonb(k))).*;
                     taken := true;
                 EXCEPTION WHEN check_violation THEN taken := false; END;
                 IF taken <> k.is_sound THEN INSERT INTO wrong VALUES (k::text); END IF;
             END LOOP; END $$"
    );
    client.batch_execute(&sql).await.unwrap();
    let wrong = client.query("SELECT what FROM wrong", &[]).await.unwrap();
    wrong.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_live_job_stands_in_one_of_its_ways_and_no_other() {
    let schema = format!("checks_live_{}", std::process::id());
    let Some((client, _)) = scratch::schema(&schema).await else { return };
    let values = "SELECT 1 AS head_n, 1 AS class, * FROM \
        unnest('{queued,queued1,executing,awaiting_tool,awaiting_tool tool,awaiting_user_confirmation,\"\"}'::text[]) state, \
        unnest('{tool,retry,retry1,\"\",NULL}'::text[]) pause, generate_series(-1, 4) phase, \
        unnest('{-10,0,1,2,11}'::int[]) slot, \
        unnest('{1,NULL}'::bigint[]) due_at, unnest('{w,NULL}'::text[]) worker, unnest('{1,NULL}'::bigint[]) lease_until, \
        unnest('{1,NULL}'::bigint[]) started_at";
    let sound = "state IN ('queued', 'executing', 'awaiting_tool', 'awaiting_user_confirmation') \
        AND phase BETWEEN 0 AND 3 AND slot BETWEEN 0 AND 1 \
        AND (pause IS NULL OR pause IN ('tool', 'retry')) AND (state = 'awaiting_tool') = (pause IS NOT NULL) \
        AND (state = 'executing') = (phase = 3) AND (state = 'executing') = (worker IS NOT NULL) \
        AND (state = 'executing') = (lease_until IS NOT NULL) AND (state <> 'executing' OR started_at IS NOT NULL) \
        AND (due_at IS NOT NULL) = (phase IN (1, 2)) AND (state <> 'queued' OR due_at IS NOT NULL) \
        AND (slot = 0) = (state = 'executing' OR pause IS NOT DISTINCT FROM 'tool')";
    assert_eq!(wrong(&client, "live", values, sound).await, Vec::<String>::new());
    for (n, class) in [(0, 0), (1, 2), (1, -1)] {
        let odd = format!(
            "INSERT INTO tried (head_n, class, state, phase, slot, due_at) VALUES ({n}, {class}, 'queued', 1, 1, 1)"
        );
        assert!(client.batch_execute(&odd).await.is_err(), "{n}, {class}");
    }
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}

#[tokio::test]
async fn a_job_has_ended_whole_or_not_at_all() {
    let schema = format!("checks_job_{}", std::process::id());
    let Some((client, _)) = scratch::schema(&schema).await else { return };
    let values = "SELECT 2 AS created_at, * FROM unnest('{completed,failed,cancelled,queued,\"\",NULL}'::text[]) state, \
        unnest('{1,2,NULL}'::bigint[]) ended_at, unnest('{1,NULL}'::bigint[]) head_n, unnest('{r,NULL}'::text[]) result, \
        unnest('{e,NULL}'::text[]) error_code";
    let sound = "(state IS NULL OR state IN ('completed', 'failed', 'cancelled')) \
        AND (state IS NULL) = (ended_at IS NULL) AND (state IS NULL) = (head_n IS NULL) \
        AND (state IS NOT DISTINCT FROM 'completed') = (result IS NOT NULL) \
        AND (state IS DISTINCT FROM 'failed' OR error_code IS NOT NULL) AND coalesce(ended_at >= created_at, true)";
    assert_eq!(wrong(&client, "job", values, sound).await, Vec::<String>::new());
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}
