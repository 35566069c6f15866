#include "job/node.h"

#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Need;
using record::Table;
using record::Told;

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
           field<&Device::model>("model", {.told = Told::kAlways}),
           field<&Device::memory_bytes>(
               "memory_bytes",
               {.help = "0: unknown.", .told = Told::kAlways, .least = 0, .schema = kInt64}),
           field<&Device::free_milli>("free",
                                      {.help = "The free part, of 1.",
                                       .told = Told::kAlways,
                                       .schema = R"({"minimum": 0, "maximum": 1})"},
                                      As::kMilli),
           field<&Device::jobs>(
               "jobs", {.help = "The jobs with tasks on it, as far as the caller may see them.",
                        .told = Told::kAlways,
                        .schema = kPlainTexts})})
          .as_answer();
  return table;
}

const Table& table_of(const Node*) {
  static const Table table =
      record::table<Node>(
          "Node",
          {field<&Node::name>("name", {.need = Need::kRequired}),
           field<&Node::pool>("pool", {.told = Told::kAlways}),
           field<&Node::state>(
               "state",
               {.help = "`draining`: cordoned, here or by the cluster, while jobs still run.",
                .need = Need::kRequired,
                .schema = R"({"enum": ["ready", "cordoned", "draining", "gone"]})"}),
           field<&Node::cpu_milli>("cpus", {.told = Told::kAlways, .schema = R"({"minimum": 0})"},
                                   As::kMilli),
           field<&Node::cpu_milli_free>("cpus_free", {.told = Told::kAlways}, As::kMilli),
           field<&Node::memory_bytes>("memory_bytes",
                                      {.told = Told::kAlways, .least = 0, .schema = kInt64}),
           field<&Node::memory_bytes_free>("memory_bytes_free",
                                           {.told = Told::kAlways, .schema = kInt64}),
           field<&Node::devices>("devices", {.told = Told::kAlways}),
           field<&Node::jobs>(
               "jobs", {.help = "The jobs with tasks there, as far as the caller may see them.",
                        .told = Told::kAlways,
                        .schema = kPlainTexts}),
           field<&Node::topology>(
               "topology",
               {.help = "Level to domain.", .told = Told::kAlways, .schema = kPlainPairs}),
           field<&Node::labels>("labels", {.told = Told::kAlways, .schema = kPlainPairs})})
          .as_answer();
  return table;
}

}  // namespace muster::job
