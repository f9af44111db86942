//! Blocks of positions.
//!
//! A commit takes a block for its events, and more of them if they are many, instead of a position for each. What comes next
//! in the history is then told by one row a commit: the first of a block always has an event, and these stand in an index of
//! their own. Positions that are left over in a block stay empty.
//!
//! Elsewhere: how far the history is final (`tailer`).

/// A block has room for two to the power of this.
pub(super) const BITS: u32 = 12;
/// The last place in a block.
pub(super) const LAST: i64 = (1 << BITS) - 1;

pub(super) const fn of(pos: i64) -> i64 {
    pos >> BITS
}

/// The last position in a block.
pub(super) const fn end(block: i64) -> i64 {
    block << BITS | LAST
}

/// The first positions of so many blocks ($2) behind a position ($1).
pub(super) fn heads_sql() -> String {
    format!("SELECT pos FROM event WHERE pos > $1 AND (pos & {LAST}) = 0 ORDER BY pos LIMIT $2")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::link::SESSION;
    use crate::postgres::listed::Listed;
    use crate::postgres::statements::insert_events;
    use crate::postgres::{migrations, scratch};
    use tokio_postgres::Client;
    use uuid::Uuid;

    #[test]
    fn a_block_ends_where_the_next_begins() {
        assert_eq!((of(0), end(0)), (0, LAST));
        assert_eq!((of(LAST), of(LAST + 1)), (0, 1));
        assert!((0..5).all(|block| of(end(block)) == block && of(end(block) + 1) == block + 1));
    }

    async fn tell(client: &Client, count: usize) -> Vec<i64> {
        let subject = Uuid::from_u128(count as u128);
        let ns: Vec<i64> = (1..=i64::try_from(count).unwrap()).collect();
        let events = Listed::of(&ns, |n, row| {
            row.put("default").put(subject).put(*n).put(0_i64).put("job.queued").put("api").put("{}");
            row.put([0_u8; 32].as_slice());
        });
        let insert = client.prepare(&insert_events(1)).await.unwrap();
        client.execute(&insert, &[&events]).await.unwrap();
        let told = client.query("SELECT pos FROM event WHERE subject = $1 ORDER BY n", &[&subject]).await.unwrap();
        told.iter().map(|row| row.get(0)).collect()
    }

    #[tokio::test]
    async fn events_stand_in_their_order_in_as_many_blocks_as_they_need() {
        let schema = format!("blocks_{}", std::process::id());
        let Some((client, _)) = scratch::schema(&schema).await else { return };
        client.batch_execute(SESSION).await.unwrap();
        let size = usize::try_from(LAST + 1).unwrap();
        let mut blocks = 0;
        for count in [1, 0, size, size + 1, 2 * size + 7] {
            let first = (blocks + 1) << BITS;
            assert!(tell(&client, count).await.into_iter().eq((first..).take(count)), "{count} events");
            blocks += i64::try_from(count.div_ceil(size)).unwrap();
        }
        let heads = client.query(&heads_sql(), &[&0_i64, &100_i64]).await.unwrap();
        assert!(heads.iter().map(|row| of(row.get(0))).eq(1..=blocks));
        client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
    }

    /// A history whose events each took a position by themselves.
    const BEFORE: &str = "CREATE SEQUENCE event_pos; DROP SEQUENCE event_block; DROP INDEX event_heads; \
        CREATE INDEX event_tail ON event (pos); DELETE FROM schema_version WHERE version >= 9; \
        ALTER TABLE event DROP CONSTRAINT event_is_sound; ALTER TABLE lane DROP CONSTRAINT lane_is_sound; \
        INSERT INTO event (pos, org, subject, n, at, kind, actor, data, hash) \
        SELECT nextval('event_pos'), 'default', gen_random_uuid(), 1, 0, 'job.queued', 'api', '{}', sha256('x') \
        FROM generate_series(1, 5000)";

    #[tokio::test]
    async fn blocks_come_behind_what_was_told_before_there_were_any() {
        let schema = format!("before_blocks_{}", std::process::id());
        let Some((client, config)) = scratch::schema(&schema).await else { return };
        client.batch_execute(BEFORE).await.unwrap();
        migrations::run(&config, false).await.unwrap();
        assert_eq!(tell(&client, 2).await, [2 << BITS, (2 << BITS) + 1]);
        let all: i64 = client.query_one("SELECT count(*) FROM event", &[]).await.unwrap().get(0);
        assert_eq!(all, 5_002);
        client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
    }
}
