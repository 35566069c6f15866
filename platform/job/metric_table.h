// The fields of metrics, one row each (record/table.h), as the API tells them.
#pragma once

#include "job/metric.h"
#include "record/table.h"

namespace muster::job {

const record::Table& table_of(const MetricPoint*);
const record::Table& table_of(const MetricSeries*);

}  // namespace muster::job
