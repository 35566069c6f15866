#include "job/notification_table.h"

#include "record/field.h"

namespace muster::job {

using record::field;
using record::Kept;
using record::Need;
using record::Table;

const Table& table_of(const Subscription*) {
  static const Table table = record::table<Subscription>(
      "Subscription",
      {field<&Subscription::id>("id", {.need = Need::kRequired}),
       field<&Subscription::project>("project", {.need = Need::kRequired}),
       field<&Subscription::url>("url", {.need = Need::kRequired}),
       field<&Subscription::on>("on", {.need = Need::kRequired}), field<&Subscription::job>("job"),
       field<&Subscription::labels>("labels"), field<&Subscription::with_lines>("with_lines"),
       field<&Subscription::sealed_key>("sealed_key",
                                        {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
       field<&Subscription::created>("created", {.need = Need::kRequired}),
       field<&Subscription::created_by>("created_by"), field<&Subscription::gone>("gone")});
  return table;
}

const Table& table_of(const Delivery*) {
  static const Table table = record::table<Delivery>(
      "Delivery", {field<&Delivery::id>("id", {.need = Need::kRequired}),
                   field<&Delivery::subscription>("subscription", {.need = Need::kRequired}),
                   field<&Delivery::project>("project", {.need = Need::kRequired}),
                   field<&Delivery::happening>("happening", {.need = Need::kRequired}),
                   field<&Delivery::job>("job"), field<&Delivery::body>("body"),
                   field<&Delivery::created>("created", {.need = Need::kRequired}),
                   field<&Delivery::attempts>("attempts"),
                   field<&Delivery::next>("next", {.need = Need::kRequired}),
                   field<&Delivery::fault>("fault"), field<&Delivery::dead>("dead")});
  return table;
}

}  // namespace muster::job
