//! A page of metrics, as it is written.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;

/// All label names are written here, and no value comes from a client. Clusters are as many as there
/// are links.
pub(super) type Labels = Vec<(&'static str, String)>;

pub(super) fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels.into_iter().map(|(key, value)| (key, value.to_owned())).collect()
}

/// The page that is being written.
pub(super) struct Page<'e> {
    pub(super) encoder: DescriptorEncoder<'e>,
}

impl Page<'_> {
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) -> std::fmt::Result {
        self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    pub(super) fn gauges(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) -> std::fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values
            .into_iter()
            .try_for_each(|(labels, value)| metric.encode_family(&labels)?.encode_gauge(&value))
    }

    pub(super) fn histogram(
        &mut self,
        name: &str,
        help: &str,
        values: &Histogram,
    ) -> std::fmt::Result {
        values.encode(self.encoder.encode_descriptor(name, help, None, MetricType::Histogram)?)
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> std::fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    pub(super) fn counters(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) -> std::fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        values.into_iter().try_for_each(|(labels, value)| {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }
}
