//! What went wrong for real operators, and must not go wrong here: those cases on one cluster. Each is told in a
//! public report against Linkerd, Kubernetes or another mesh.

mod mesh;

mod load;
mod names;
mod profiles;
mod slices;
mod zones;
