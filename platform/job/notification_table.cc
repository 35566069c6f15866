#include "job/notification_table.h"

#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Kept;
using record::Need;
using record::Table;
using record::Told;

namespace {

constexpr const char* kLabelTexts = R"({"additionalProperties": {"type": "string"}})";

}  // namespace

const Table& table_of(const Subscription*) {
  static const Table table =
      record::table<Subscription>(
          "Subscription",
          {field<&Subscription::id>("id", {.need = Need::kRequired}),
           field<&Subscription::project>("project", {.need = Need::kRequired}),
           field<&Subscription::url>(
               "url", {.help = "Without its path, unless the caller is an admin of the project.",
                       .need = Need::kRequired}),
           field<&Subscription::on>("on", {.need = Need::kRequired}),
           field<&Subscription::job>("job", {.told = Told::kAlways}),
           field<&Subscription::labels>("labels", {.told = Told::kAlways, .schema = kLabelTexts}),
           field<&Subscription::with_lines>("with_lines", {.told = Told::kAlways}),
           field<&Subscription::sealed_key>("sealed_key",
                                            {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
           field<&Subscription::created>("created", {.need = Need::kRequired}),
           field<&Subscription::created_by>("created_by", {.told = Told::kAlways}),
           field<&Subscription::gone>(
               "gone", {.help = "When the receiver answered 410. Nothing is sent since then.",
                        .told = Told::kAlways,
                        .null = "the receiver has not answered 410"})})
          .as_answer();
  return table;
}

const Table& table_of(const Delivery*) {
  static const Table table =
      record::table<Delivery>(
          "DeadLetter",
          {field<&Delivery::id>("id", {.need = Need::kRequired}),
           field<&Delivery::subscription>("subscription",
                                          {.help = "Its id.", .need = Need::kRequired}),
           field<&Delivery::project>("project",
                                     {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
           field<&Delivery::happening>("event", {.need = Need::kRequired}),
           field<&Delivery::job>("job", {.told = Told::kAlways}),
           field<&Delivery::body>("body", {.kept = Kept::kStoreOnly}),
           field<&Delivery::created>("created", {.need = Need::kRequired}),
           field<&Delivery::attempts>("attempts", {.told = Told::kAlways, .least = 0}),
           field<&Delivery::next>("next", {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
           field<&Delivery::fault>("fault",
                                   {.help = "Why the last attempt failed.", .told = Told::kAlways},
                                   As::kProse),
           field<&Delivery::dead>("dead", {.help = "Since when it is not sent any more.",
                                           .told = Told::kAlways,
                                           .null = "it is still being sent"})})
          .as_answer();
  return table;
}

}  // namespace muster::job
