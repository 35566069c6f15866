#include "job/node.h"

#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Need;
using record::Sent;
using record::Table;

namespace {

constexpr const char* kInt64 = R"({"format": "int64"})";
// Names of jobs and labels of nodes are always UTF-8.
constexpr const char* kPlainTexts = R"({"items": {"type": "string"}})";
constexpr const char* kPlainPairs = R"({"additionalProperties": {"type": "string"}})";

}  // namespace

const Table& table_of(const Device*) {
  static const Table table =
      record::table<Device>(
          "Device",
          {field<&Device::index>("index", {.need = Need::kRequired, .least = 0}),
           field<&Device::model>("model", {.sent = Sent::kAlways}),
           field<&Device::memory_bytes>(
               "memory_bytes",
               {.help = "0: unknown.", .sent = Sent::kAlways, .least = 0, .schema = kInt64}),
           field<&Device::free_milli>("free",
                                      {.help = "The free part, of 1.",
                                       .sent = Sent::kAlways,
                                       .schema = R"({"minimum": 0, "maximum": 1})"},
                                      As::kMilli),
           field<&Device::jobs>(
               "jobs", {.help = "The jobs with tasks on it, as far as the caller may see them.",
                        .sent = Sent::kAlways,
                        .schema = kPlainTexts})})
          .as_answer();
  return table;
}

const Table& table_of(const Node*) {
  static const Table table =
      record::table<Node>(
          "Node",
          {field<&Node::name>("name", {.need = Need::kRequired}),
           field<&Node::pool>("pool", {.sent = Sent::kAlways}),
           field<&Node::state>(
               "state",
               {.help = "`draining`: cordoned, here or by the cluster, while jobs still run.",
                .need = Need::kRequired,
                .schema = R"({"enum": ["ready", "cordoned", "draining", "gone"]})"}),
           field<&Node::cpu_milli>("cpus", {.sent = Sent::kAlways, .schema = R"({"minimum": 0})"},
                                   As::kMilli),
           field<&Node::cpu_milli_free>("cpus_free", {.sent = Sent::kAlways}, As::kMilli),
           field<&Node::memory_bytes>("memory_bytes",
                                      {.sent = Sent::kAlways, .least = 0, .schema = kInt64}),
           field<&Node::memory_bytes_free>("memory_bytes_free",
                                           {.sent = Sent::kAlways, .schema = kInt64}),
           field<&Node::devices>("devices", {.sent = Sent::kAlways}),
           field<&Node::jobs>(
               "jobs", {.help = "The jobs with tasks there, as far as the caller may see them.",
                        .sent = Sent::kAlways,
                        .schema = kPlainTexts}),
           field<&Node::topology>(
               "topology",
               {.help = "Level to domain.", .sent = Sent::kAlways, .schema = kPlainPairs}),
           field<&Node::labels>("labels", {.sent = Sent::kAlways, .schema = kPlainPairs})})
          .as_answer();
  return table;
}

}  // namespace muster::job
