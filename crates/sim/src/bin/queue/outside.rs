//! The same from outside: the real binary, jobs asked for and done over HTTP by workers on connections of their own.

use crate::figure::median;
use crate::server::{Server, begin, binary};
use anyhow::{Context, Result, ensure};
use baton_sim::lab::Lab;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

const CALLERS: usize = 8;
const MEASURE: Duration = Duration::from_secs(4);
const WORKERS: usize = 4;
/// Jobs that one ask takes, and settles.
const AT_ONCE: usize = 100;
pub const JOBS: usize = 20_000;
const BATCH: usize = 500;
const ASKS: usize = 300;
/// A drain that takes longer is stuck.
const STUCK: Duration = Duration::from_secs(120);

pub struct Outside {
    pub single: f64,
    pub bulk: f64,
    pub drain: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// One connection that is kept.
struct Caller {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Caller {
    async fn new(address: SocketAddr, key: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!("host: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n");
        Ok(Self { stream: BufReader::new(stream), head })
    }

    async fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let request = format!("{method} {path} HTTP/1.1\r\n{}content-length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let (mut line, mut length, mut status) = (String::new(), 0, 0);
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line).await? > 0, "the server hung up");
            let text = line.trim().to_lowercase();
            if let Some(code) = text.strip_prefix("http/1.1 ") {
                status = code.split(' ').next().unwrap_or_default().parse()?;
            } else if let Some(bytes) = text.strip_prefix("content-length: ") {
                length = bytes.parse()?;
            } else if text.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).await?;
        ensure!((200..300).contains(&status), "{method} {path}: {status} {}", String::from_utf8_lossy(&answer));
        Ok(serde_json::from_slice(&answer)?)
    }
}

/// Nothing if there is no binary beside this program.
pub async fn measure(lab: &Lab) -> Result<Option<Outside>> {
    let Some(binary) = binary()? else { return Ok(None) };
    let dir = lab.data_dir("outside");
    // Caps are set: they are not what is measured.
    let env = [
        ("ORCHESTRATOR_QUEUE_MAX_PER_PROJECT", "1000000"),
        ("ORCHESTRATOR_QUEUE_MAX_GLOBAL", "1000000"),
        ("BATON_RATE_LIMIT", "0"),
    ];
    let (_server, address): (Server, _) = begin(lab, &binary, &dir, &env).await?;
    let key = std::fs::read_to_string(dir.join("admin.key")).context("the admin key")?.trim().to_owned();
    let mut caller = Caller::new(address, &key).await?;
    for kind in ["in", "out", "soon"] {
        // A lane of its own each: what the first measurement leaves behind is not in the way of the next.
        let open = json!({ "lane": { "key": kind } });
        caller.ask("PUT", &format!("/api/v1/job-types/{kind}"), &open).await?;
    }
    let single = single(address, &key).await?;
    let bulk = bulk(&mut caller).await?;
    let drain = drain(address, &key).await?;
    let (p50_ms, p99_ms) = latency(address, &key).await?;
    Ok(Some(Outside { single, bulk, drain, p50_ms, p99_ms }))
}

async fn single(address: SocketAddr, key: &str) -> Result<f64> {
    let began = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..CALLERS {
        let mut caller = Caller::new(address, key).await?;
        all.spawn(async move {
            let mut asked = 0_usize;
            while began.elapsed() < MEASURE {
                caller.ask("POST", "/api/v1/jobs", &json!({ "type": "in", "projectId": "p" })).await?;
                asked += 1;
            }
            anyhow::Ok(asked)
        });
    }
    let mut sum = 0;
    while let Some(asked) = all.join_next().await {
        sum += asked??;
    }
    Ok(sum as f64 / began.elapsed().as_secs_f64())
}

/// Fills the backlog that is drained next.
async fn bulk(caller: &mut Caller) -> Result<f64> {
    let jobs: Vec<Value> = (0..BATCH).map(|n| json!({ "type": "out", "projectId": format!("p{n}") })).collect();
    let batch = json!({ "jobs": jobs });
    let began = Instant::now();
    for _ in 0..JOBS / BATCH {
        caller.ask("POST", "/api/v1/jobs/batch", &batch).await?;
    }
    Ok(JOBS as f64 / began.elapsed().as_secs_f64())
}

/// Each worker settles what it has done with the ask for what comes next.
async fn drain(address: SocketAddr, key: &str) -> Result<f64> {
    let done = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..WORKERS {
        let (mut caller, done) = (Caller::new(address, key).await?, done.clone());
        all.spawn(async move {
            let (mut settle, mut ids) = (Vec::new(), Vec::new());
            while done.load(Ordering::SeqCst) < JOBS {
                let ask = json!({ "types": ["out"], "max": AT_ONCE, "settle": std::mem::take(&mut settle) });
                let answer = caller.ask("POST", "/api/v1/worker/lease", &ask).await?;
                let settled = answer["settled"].as_array().context("settled")?;
                ensure!(settled.iter().all(|one| one["settled"] == "now"), "{settled:?}");
                done.fetch_add(settled.len(), Ordering::SeqCst);
                for leased in answer["leases"].as_array().context("leases")? {
                    ids.push(leased["job"]["id"].to_string());
                    settle.push(json!({ "lease": leased["lease"], "complete": {} }));
                }
                ensure!(began.elapsed() < STUCK, "the drain is stuck");
            }
            anyhow::Ok(ids)
        });
    }
    let mut ids = BTreeSet::new();
    let mut sum = 0;
    while let Some(ran) = all.join_next().await {
        let ran = ran??;
        sum += ran.len();
        ids.extend(ran);
    }
    let took = began.elapsed();
    ensure!(sum == JOBS && ids.len() == JOBS, "{sum} were done, {} of them different", ids.len());
    Ok(JOBS as f64 / took.as_secs_f64())
}

/// From before a job is asked for until a worker that waits has it.
async fn latency(address: SocketAddr, key: &str) -> Result<(f64, f64)> {
    let (mut asking, mut working) = (Caller::new(address, key).await?, Caller::new(address, key).await?);
    let mut all = Vec::with_capacity(ASKS);
    let mut settle = Vec::new();
    for _ in 0..ASKS {
        let ask = json!({ "types": ["soon"], "waitMs": 10_000, "settle": std::mem::take(&mut settle) });
        let waits = async {
            let answer = working.ask("POST", "/api/v1/worker/lease", &ask).await?;
            anyhow::Ok((Instant::now(), answer))
        };
        let asks = async {
            // The worker is to be waiting by then.
            tokio::time::sleep(Duration::from_millis(3)).await;
            let began = Instant::now();
            asking.ask("POST", "/api/v1/jobs", &json!({ "type": "soon", "projectId": "p" })).await?;
            anyhow::Ok(began)
        };
        let (got, began) = tokio::try_join!(waits, asks)?;
        all.push((got.0 - began).as_secs_f64() * 1e3);
        let lease = &got.1["leases"][0]["lease"];
        ensure!(lease.is_string(), "{}", got.1);
        settle.push(json!({ "lease": lease, "complete": {} }));
    }
    all.sort_by(f64::total_cmp);
    let p99 = all[all.len() * 99 / 100];
    Ok((median(all), p99))
}
