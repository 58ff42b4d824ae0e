//! Finds the programs: where envtest would look for them, or built from their Go modules into `target/`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// The version that the API server says it is. Its module doesn't know by itself.
const KUBERNETES: (&str, &str, &str) = ("1", "34", "v1.34.4");

/// Where the two programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) etcd: PathBuf,
    pub(super) apiserver: PathBuf,
}

impl Programs {
    /// Finds or builds them. Building takes minutes the first time; whoever else wants them meanwhile waits.
    pub(super) fn find() -> Result<Programs> {
        if let Some(assets) = env("KUBEBUILDER_ASSETS") {
            let programs = Programs::of(Path::new(&assets));
            ensure!(
                programs.exist(),
                "KUBEBUILDER_ASSETS is {assets}, where etcd or kube-apiserver is missing"
            );
            return Ok(programs);
        }
        let (target, _lock) = locked_target()?;
        let programs = Programs::of(&target);
        if !programs.exist() {
            build(&programs)?;
        }
        Ok(programs)
    }

    fn of(folder: &Path) -> Programs {
        Programs { etcd: folder.join("etcd"), apiserver: folder.join("kube-apiserver") }
    }

    fn exist(&self) -> bool {
        self.etcd.is_file() && self.apiserver.is_file()
    }
}

/// Builds the program that fills an etcd. It changes with these tests, so Go is asked each time: where nothing
/// has changed, that takes a second.
pub(super) fn loader() -> Result<PathBuf> {
    ensure!(has_go(), "filling an API server needs Go, to build the program that does it");
    let (target, _lock) = locked_target()?;
    let program = target.join("load");
    go_build("load", "", &program)?;
    Ok(program)
}

/// The folder of what is built here, and the right to build there.
fn locked_target() -> Result<(PathBuf, File)> {
    let target = target();
    std::fs::create_dir_all(&target)?;
    let lock = File::create(target.join("lock"))?;
    lock.lock().context("locking the build of the API server")?;
    Ok((target, lock))
}

fn has_go() -> bool {
    Command::new("go").arg("version").output().is_ok()
}

fn build(programs: &Programs) -> Result<()> {
    if !has_go() {
        bail!(
            "these tests need a Kubernetes API server: either set KUBEBUILDER_ASSETS to a folder with \
             etcd and kube-apiserver, or install Go, and they are built into target/kube"
        );
    }
    go_build("etcd", "", &programs.etcd)?;
    let (major, minor, version) = KUBERNETES;
    let package = "k8s.io/component-base/version";
    let flags = format!(
        "-X {package}.gitMajor={major} -X {package}.gitMinor={minor} -X {package}.gitVersion={version}"
    );
    go_build("apiserver", &flags, &programs.apiserver)
}

/// Under another name first: what is there under its own is whole.
fn go_build(module: &str, flags: &str, to: &Path) -> Result<()> {
    let part = to.with_extension("part");
    let output = Command::new("go")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("kube").join(module))
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .args(["build", "-ldflags", &format!("-s -w {flags}"), "-o"])
        .arg(&part)
        .arg(".")
        .output()?;
    if !output.status.success() {
        bail!("building {module} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::rename(&part, to)?;
    Ok(())
}

/// `target/kube`, wherever cargo has its target folder: this program is in `<target>/<profile>/deps`.
fn target() -> PathBuf {
    let here = std::env::current_exe().ok();
    let target = here.as_deref().and_then(|path| path.ancestors().nth(3));
    let fallback = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    target.map_or(fallback, Path::to_owned).join("kube")
}

#[expect(clippy::disallowed_methods, reason = "the convention of envtest")]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
