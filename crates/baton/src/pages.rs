//! Lists that come in pages, read until there are as many as somebody asked for.
//!
//! A page may be short, and even empty, though there is more: then the next one is asked for.

use crate::args::PageArgs;
use crate::client::Client;
use crate::fault::Fault;
use baton_core::OrgId;
use baton_wire::{
    Decision, DecisionList, Delivery, DeliveryList, JobList, JobType, JobTypeList, Key, KeyList, Lane, LaneList,
    OrgList, Schedule, ScheduleList, Webhook, WebhookList, limit,
};
use serde::de::DeserializeOwned;

/// Pages that are read for one list. Where that is not enough, the list says where to go on.
const PAGES: usize = 100;

pub trait Page: DeserializeOwned {
    type Item;
    /// The most that the server puts into one.
    const MOST: usize;

    fn parts(&mut self) -> (&mut Vec<Self::Item>, &mut Option<String>);
}

impl Page for JobList {
    type Item = baton_wire::Job;
    const MOST: usize = limit::JOBS;

    fn parts(&mut self) -> (&mut Vec<Self::Item>, &mut Option<String>) {
        (&mut self.jobs, &mut self.next_cursor)
    }
}

impl Page for LaneList {
    type Item = Lane;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Lane>, &mut Option<String>) {
        (&mut self.lanes, &mut self.next_cursor)
    }
}

impl Page for ScheduleList {
    type Item = Schedule;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Schedule>, &mut Option<String>) {
        (&mut self.schedules, &mut self.next_cursor)
    }
}

impl Page for JobTypeList {
    type Item = JobType;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<JobType>, &mut Option<String>) {
        (&mut self.job_types, &mut self.next_cursor)
    }
}

impl Page for KeyList {
    type Item = Key;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Key>, &mut Option<String>) {
        (&mut self.keys, &mut self.next_cursor)
    }
}

impl Page for OrgList {
    type Item = OrgId;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<OrgId>, &mut Option<String>) {
        (&mut self.orgs, &mut self.next_cursor)
    }
}

impl Page for WebhookList {
    type Item = Webhook;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Webhook>, &mut Option<String>) {
        (&mut self.webhooks, &mut self.next_cursor)
    }
}

impl Page for DeliveryList {
    type Item = Delivery;
    const MOST: usize = limit::JOBS;

    fn parts(&mut self) -> (&mut Vec<Delivery>, &mut Option<String>) {
        (&mut self.deliveries, &mut self.next_cursor)
    }
}

impl Page for DecisionList {
    type Item = Decision;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Decision>, &mut Option<String>) {
        (&mut self.decisions, &mut self.next_cursor)
    }
}

/// What is asked of a list.
pub struct Ask<'a> {
    pub path: &'a str,
    pub query: Vec<(&'static str, String)>,
    pub page: &'a PageArgs,
}

/// As many as asked for, if there are, as if they came in one page.
pub async fn read<P: Page>(client: &Client, ask: Ask<'_>) -> Result<P, Fault> {
    let limit = ask.page.limit;
    let mut list: P = page(client, &ask, limit, ask.page.cursor.clone()).await?;
    for _ in 1..PAGES {
        let (items, next) = list.parts();
        let Some(cursor) = next.take_if(|_| items.len() < limit) else { break };
        let mut more: P = page(client, &ask, limit - items.len(), Some(cursor)).await?;
        let (found, further) = more.parts();
        items.append(found);
        *next = further.take();
    }
    Ok(list)
}

async fn page<P: Page>(client: &Client, ask: &Ask<'_>, left: usize, cursor: Option<String>) -> Result<P, Fault> {
    let mut query = ask.query.clone();
    query.push(("limit", left.min(P::MOST).to_string()));
    query.extend(ask.page.order.map(|order| ("order", order.to_string())));
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    client.get(ask.path, &query).await
}
