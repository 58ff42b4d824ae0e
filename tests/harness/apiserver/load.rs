//! Fills an API server with more objects than it could be sent in the time of a test.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

/// Size of a pod into which the proxy was injected.
pub const INJECTED_BYTES: usize = 7_000;

/// Pods, and what belongs to them: their Services, slices and ReplicaSets.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Where to. It is created if it isn't there.
    pub namespace: &'a str,
    /// All objects' names begin with it and a dash; the Services are `name-0`, `name-1`, …
    pub name: &'a str,
    /// They share the pods. Without them there are pods only, which no slice names.
    pub services: usize,
    /// How many.
    pub pods: usize,
    /// The number of the first one, from which its address follows: loads that overlap share addresses.
    pub first: usize,
    /// Size of a pod, if it is more than a meshed one needs.
    pub bytes: usize,
    /// Only those that are `Running` are ready.
    pub phase: &'a str,
    /// Objects per second at most.
    pub per_second: Option<usize>,
}

impl Default for Load<'_> {
    fn default() -> Self {
        Load {
            namespace: "shop",
            name: "load",
            services: 0,
            pods: 0,
            first: 0,
            bytes: 0,
            phase: "Running",
            per_second: None,
        }
    }
}

impl Load<'_> {
    /// The name of one of its Services.
    pub fn service(&self, index: usize) -> String {
        format!("{}-{index}", self.name)
    }

    /// One of its Services' first slice, as Kind/namespace/name.
    pub fn slice(&self, index: usize) -> String {
        let first = self.numbers(index).start;
        format!("EndpointSlice/{}/{}-{first:07}", self.namespace, self.service(index))
    }

    /// Where one of its Services' pods are.
    pub fn addresses(&self, index: usize) -> BTreeSet<SocketAddr> {
        let first = Ipv4Addr::new(10, 128, 0, 0).to_bits();
        let ip = |number| Ipv4Addr::from_bits(first + u32::try_from(number).unwrap_or(u32::MAX));
        self.numbers(index).map(|number| SocketAddr::from((ip(number), 8080))).collect()
    }

    /// The numbers of one of its Services' pods.
    fn numbers(&self, index: usize) -> Range<usize> {
        let each = self.pods / self.services;
        let first = self.first + index * each;
        first..first + each
    }

    /// Runs the program that writes the objects into etcd, or deletes those of the name.
    pub(super) async fn run(&self, program: &Path, etcd: SocketAddr, delete: bool) -> Result<()> {
        let args = [
            format!("-etcd={etcd}"),
            format!("-namespace={}", self.namespace),
            format!("-name={}", self.name),
            format!("-services={}", self.services),
            format!("-pods={}", self.pods),
            format!("-first={}", self.first),
            format!("-bytes={}", self.bytes),
            format!("-phase={}", self.phase),
            format!("-per-second={}", self.per_second.unwrap_or_default()),
            format!("-delete={delete}"),
        ];
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.context("running the loader")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the loader failed: {error}");
        Ok(())
    }
}
