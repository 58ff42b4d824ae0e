//! Clusters in, views out: the rows of spec part 7 that concern what a Get answers.

mod claims;
mod contents;
mod explained;
mod families;
mod fixture;
mod laws;
mod mirrors;
mod servers;
mod show;
mod slices;
mod topology;
mod words;
