//! Settings and contexts: whether they can be read, and fit together.

use super::finding::{Check, Finding};
use crate::args::SettingsArgs;
use crate::config::{self, Settings};
use crate::contexts::Contexts;
use crate::tls;
use std::path::Path;

/// What was found about the settings, and the settings if they can be used.
pub fn look(args: &SettingsArgs) -> (Vec<Finding>, Option<Settings>) {
    let file = args.store.config.as_deref().filter(|path| !path.as_os_str().is_empty());
    match config::settings(args) {
        Ok(settings) => {
            let from = file.map_or_else(|| "no file is given".to_owned(), |path| path.display().to_string());
            let mut findings = vec![Finding::ok(Check::Configuration, format!("can be used ({from})"))];
            findings.extend(certificate(&settings));
            findings.extend(exposed(file, &settings));
            findings.extend(switched_off(&settings));
            (findings, Some(settings))
        }
        Err(fault) => {
            let advice = "mend it; until then nothing else about the installation can be looked at";
            (vec![Finding::fault(Check::Configuration, &fault, advice)], None)
        }
    }
}

/// Whether TLS could be spoken as it was asked for.
fn certificate(settings: &Settings) -> Option<Finding> {
    let files = settings.listen.tls.as_ref()?;
    let open = super::directory::mode(&files.key).is_some_and(|mode| mode & 0o077 != 0);
    let shown = files.key.display();
    Some(match tls::server(files) {
        Err(fault) => Finding::fault(Check::Configuration, &fault, "mend or replace the file"),
        Ok(_) if open => Finding::problem(
            Check::Configuration,
            format!("{shown} may be read by others"),
            format!("chmod 600 {shown}"),
        ),
        Ok(_) => Finding::ok(Check::Configuration, format!("TLS with {}", files.cert.display())),
    })
}

/// A file that holds a password and that others can read.
fn exposed(file: Option<&Path>, settings: &Settings) -> Option<Finding> {
    let path = file?;
    let has_password = settings.store.database.as_ref().is_some_and(config::Url::has_password);
    let open = super::directory::mode(path).is_some_and(|mode| mode & 0o077 != 0);
    (has_password && open).then(|| {
        let detail = format!("{} may be read by others, and a password goes with it", path.display());
        Finding::warning(Check::Configuration, detail, format!("chmod 600 {}", path.display()))
    })
}

fn switched_off(settings: &Settings) -> Option<Finding> {
    let advice = "start it with ORCHESTRATOR_QUEUE_ENABLED=true, or without that setting";
    let detail = "the queue is switched off: no job would be taken in, and none handed out";
    (!settings.rules.enabled).then(|| Finding::warning(Check::Configuration, detail, advice))
}

/// Only where there are any.
pub fn contexts() -> Option<Finding> {
    let path = Contexts::path().ok().filter(|path| path.exists())?;
    let finding = match Contexts::read().and_then(|all| all.find(None).map(|_| all.len())) {
        Err(fault) => {
            Finding::fault(Check::Contexts, &fault, "mend the file, or make it anew with: baton contexts add")
        }
        Ok(_) if super::directory::mode(&path).is_some_and(|mode| mode & 0o077 != 0) => {
            let detail = format!("{} holds keys and may be read by others", path.display());
            Finding::problem(Check::Contexts, detail, format!("chmod 600 {}; then rotate its keys", path.display()))
        }
        Ok(count) => Finding::ok(Check::Contexts, format!("{count} in {}", path.display())),
    };
    Some(finding)
}
