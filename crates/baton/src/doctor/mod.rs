//! `baton doctor`: whether everything is as it should be, and what to do where it is not.
//!
//! It looks and changes nothing. What a running server holds is asked of the server, so that looking
//! never gets into its way.

mod clock;
mod configuration;
mod database;
mod directory;
mod finding;
mod port;
mod server;
mod tools;

use crate::args::DoctorArgs;
use crate::config::{Settings, Url};
use crate::fault::Fault;
use crate::{address, client, target};
use baton_engine::SystemClock;
use baton_store::Clock as _;
use finding::{Finding, Report};

pub fn run(args: DoctorArgs) -> Result<(), Fault> {
    client::block_on(async {
        let report = Report::new(examine(&args).await);
        report.say(args.client.json)?;
        match report.problems() {
            0 => Ok(()),
            1 => Err(unhealthy("there is a problem")),
            n => Err(unhealthy(&format!("there are {n} problems"))),
        }
    })
}

fn unhealthy(detail: &str) -> Fault {
    Fault::new("unhealthy", detail).hint("each is told above with what to do about it")
}

async fn examine(args: &DoctorArgs) -> Vec<Finding> {
    let now = SystemClock.now();
    let (mut findings, settings) = configuration::look(&args.settings);
    findings.extend(configuration::contexts());
    findings.push(clock::sane(now));
    if let Some(settings) = settings {
        findings.extend(installation(args, &settings).await);
    } else if let Some(server) = server::named(&args.client) {
        findings.extend(server::look(server).await);
    }
    findings
}

/// What is on this machine, and the server that was named or runs here.
async fn installation(args: &DoctorArgs, settings: &Settings) -> Vec<Finding> {
    let store = &settings.store;
    let running = address::alive(&store.data_dir);
    let mut findings = tools::look(&settings.tools);
    findings.extend(directory::look(&store.data_dir, SystemClock.now()));
    findings.extend(database::look(store, running).await);
    findings.push(port::look(&settings.listen, running).await);
    let here = || running.map(|address| target::here(settings, address, &args.client));
    match server::named(&args.client).or_else(here) {
        Some(server) => findings.extend(server::look(server).await),
        None => findings.push(server::none()),
    }
    for finding in &mut findings {
        finding.detail = scrubbed(store.database.as_ref(), &finding.detail);
    }
    findings
}

/// Drivers repeat URLs, and so passwords.
fn scrubbed(database: Option<&Url>, text: &str) -> String {
    database.map_or_else(|| text.to_owned(), |url| url.scrub(text))
}
