//! The part of a group's second round trip that belongs to the queue around the jobs: new lanes,
//! keys, messages, documents, sinks, and what retention removes.

use super::statements::Statements;
use super::write::{Batch, col, int, params};
use baton_core::job::{Cold, Ending, Job};
use baton_core::{Micros, World};
use uuid::Uuid;

impl<'a> Batch<'a> {
    pub(super) fn queue(&mut self, s: &'a Statements, world: &'a World, now: Micros) {
        let payloads: Vec<_> = world.payload_writes().collect();
        self.add(payloads.len(), &s.put_payloads, || {
            params![
                col(&payloads, |(org, _, _)| org.as_str()),
                col(&payloads, |(_, id, _)| id.0),
                col(&payloads, |(_, _, payload)| payload.as_str()),
            ]
        });
        let lanes: Vec<_> = world.lane_writes().filter(|(org, key, _)| world.lane_is_new(org, key)).collect();
        self.add(lanes.len(), &s.insert_lanes, || {
            params![
                col(&lanes, |(org, _, _)| org.as_str()),
                col(&lanes, |(_, key, _)| key.as_str()),
                col(&lanes, |(_, _, row)| row.max.map(int)),
                col(&lanes, |(_, _, row)| int(row.running)),
                col(&lanes, |(_, _, row)| int(row.waiting)),
                col(&lanes, |(_, _, row)| int(row.outside)),
                col(&lanes, |(_, _, row)| int(row.burst)),
            ]
        });
        let docs: Vec<_> = world.doc_writes().collect();
        self.add(docs.len(), &s.put_docs, || {
            params![
                col(&docs, |(org, _, _)| org.as_str()),
                col(&docs, |(_, key, _)| key.class.as_str()),
                col(&docs, |(_, key, _)| key.key.as_str()),
                col(&docs, |(_, _, doc)| doc.id.0),
                col(&docs, |(_, _, doc)| doc.flag),
                col(&docs, |(_, _, doc)| doc.body.as_str()),
                col(&docs, |(_, _, doc)| doc.head.n),
                col(&docs, |(_, _, doc)| doc.head.hash.0.as_slice()),
                col(&docs, |(_, _, doc)| doc.head.at.0),
            ]
        });
        let messages: Vec<_> = world.message_writes().collect();
        self.add(messages.len(), &s.put_messages, || {
            params![
                col(&messages, |(org, _, _)| org.as_str()),
                col(&messages, |(_, id, _)| *id),
                col(&messages, |(_, _, m)| m.job.0),
                col(&messages, |(_, _, m)| m.expires_at.0),
                now.0,
            ]
        });
        let sinks: Vec<_> = world.sink_writes().collect();
        self.add(sinks.len(), &s.put_sinks, || {
            params![
                col(&sinks, |(org, _, _)| org.as_str()),
                col(&sinks, |(_, key, _)| key.space.as_str()),
                col(&sinks, |(_, key, _)| key.key.as_str()),
                col(&sinks, |(_, _, row)| row.value.as_str()),
                col(&sinks, |(_, _, row)| row.at.0),
            ]
        });
    }

    /// What jobs that were made or have ended still stand for.
    pub(super) fn remembered(
        &mut self,
        s: &'a Statements,
        born: &[(&'a Job, &'a Cold)],
        end: &[(&'a Job, &'a Ending)],
    ) {
        let failed: Vec<&Job> =
            end.iter().filter(|(_, ending)| matches!(ending, Ending::Error(_))).map(|(job, _)| *job).collect();
        self.add(failed.len(), &s.put_dead_letters, || {
            params![
                col(&failed, |job| job.org.as_str()),
                col(&failed, |job| job.id.0),
                col(&failed, |job| job.project.as_str()),
                col(&failed, |job| job.kind.name.as_str()),
            ]
        });
        // One may have failed and been made anew in this very group.
        let anew: Vec<_> = born.iter().filter_map(|(job, cold)| Some((*job, cold.requeued_from?))).collect();
        self.add(anew.len(), &s.delete_dead_letters, || {
            params![col(&anew, |(job, _)| job.org.as_str()), col(&anew, |(_, from)| from.0)]
        });
        let keeps: Vec<_> = end.iter().filter_map(|(job, _)| Some((*job, job.dedupe.as_deref()?))).collect();
        self.add(keeps.len(), &s.put_dropped, || {
            params![
                col(&keeps, |(job, _)| job.org.as_str()),
                col(&keeps, |(job, _)| job.kind.name.as_str()),
                col(&keeps, |(_, key)| *key),
                col(&keeps, |(job, _)| job.id.0),
            ]
        });
    }

    pub(super) fn prunings(&mut self, s: &'a Statements, world: &'a World) {
        let prunings = world.prune_writes();
        let stubs: Vec<_> = (prunings.iter())
            .flat_map(|(org, pruned)| pruned.jobs.iter().map(move |job| (org, pruned, job)))
            .flat_map(|(org, pruned, job)| job.events.iter().map(move |stub| (org, pruned, stub)))
            .collect();
        let jobs: Vec<(&str, Uuid)> = (prunings.iter())
            .flat_map(|(org, pruned)| pruned.jobs.iter().map(move |job| (org.as_str(), job.job.0)))
            .collect();
        self.add(stubs.len(), &s.insert_pruned, || {
            params![
                col(&stubs, |(org, _, _)| org.as_str()),
                col(&stubs, |(_, _, stub)| stub.pos),
                col(&stubs, |(_, _, stub)| stub.hash.as_slice()),
                col(&stubs, |(_, pruned, _)| pruned.by.0),
                col(&stubs, |(_, pruned, _)| pruned.n),
            ]
        });
        let events = i64::try_from(stubs.len()).unwrap_or(i64::MAX);
        let keys = || (col(&jobs, |(org, _)| *org), col(&jobs, |(_, id)| *id));
        self.add(jobs.len(), &s.prune_events, || params![keys().0, keys().1, events]);
        for statement in [&s.delete_dead_letters, &s.prune_dropped, &s.prune_jobs] {
            self.add(jobs.len(), statement, || params![keys().0, keys().1]);
        }
    }
}
