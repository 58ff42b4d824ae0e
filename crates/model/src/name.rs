//! Names of clusters, objects and Services: checked once, then passed on as such.

use crate::limits::NAME_BYTES_MAX;

/// A cluster whose objects are stored, or of a linked one a part that is watched by itself ([`Part`](crate::Part)): objects
/// depend on others of their own number only. Small, since it is part of every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u16);

impl ClusterId {
    /// The cluster that the server itself runs in.
    pub const LOCAL: ClusterId = ClusterId(0);
}

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Longer than Kubernetes allows.
    #[error("name of {bytes} bytes is longer than the {NAME_BYTES_MAX} that Kubernetes allows")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A NUL byte, which separates names in the store's keys.
    #[error("name {name:?} contains a NUL byte")]
    Nul {
        /// The name.
        name: String,
    },
}

fn check(name: &str) -> Result<(), NameError> {
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    if name.contains('\0') {
        return Err(NameError::Nul { name: name.to_owned() });
    }
    Ok(())
}

/// The namespace and name of a Kubernetes object; the namespace of a cluster-scoped one is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    namespace: String,
    name: String,
}

impl ObjectName {
    /// Checks both parts: at most 253 bytes each, no NUL. DNS rules are the API server's to enforce:
    /// a name that breaks them finds nothing, and harms nothing.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<ObjectName, NameError> {
        let (namespace, name) = (namespace.into(), name.into());
        check(&namespace)?;
        check(&name)?;
        Ok(ObjectName { namespace, name })
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name within the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// A Service of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    /// Whose Service it is.
    pub cluster: ClusterId,
    /// Its namespace and name.
    pub object: ObjectName,
}

impl std::fmt::Display for ServiceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.object)
    }
}
