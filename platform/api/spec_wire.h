// A spec within other documents: what spec.cc and job.cc of the wire share.
#pragma once

#include "api/fields.h"
#include "api/json_writer.h"
#include "job/spec.h"

namespace muster::api {

void write_spec(JsonWriter& json, const job::JobSpec& spec);
void read_spec(Fields& fields, job::JobSpec& spec);

void write_scheduling(JsonWriter& json, const job::Scheduling& scheduling);
void read_scheduling(Fields& fields, job::Scheduling& scheduling);

}  // namespace muster::api
