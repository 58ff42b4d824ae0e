//! Get and GetProfile over a real store: what streams say when objects change.

mod fixture;

mod explain;
mod explain_profile;
mod flows;
mod linked;
mod network;
mod order;
mod oversize;
mod profiles;
mod random;
mod streams;
