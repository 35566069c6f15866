#include "words/job_table.h"

#include "job/project.h"
#include "record/field.h"
#include "words/fact_rows.h"
#include "words/sentence.h"

namespace muster::job {

using record::As;
using record::field;
using record::Input;
using record::JsonWriter;
using record::Kept;
using record::Need;
using record::Schema;
using record::Schemas;
using record::Sent;
using record::Table;
using words::fact_row;
using words::reason_rows;
using words::sentence_row;

namespace {

/// The sentence of an eviction; a client that does not support its fact keeps the sentence.
class SentenceOfEviction final : public record::Type {
 public:
  void write(JsonWriter& json, const void* job, record::Form) const override {
    json.prose(words::sentence(*static_cast<const Job*>(job)->eviction));
  }
  void read(const Input& input, void* job) const override {
    auto text = record::read_text(input);
    if (text) static_cast<Job*>(job)->eviction = Remark{*std::move(text)};
  }
  bool is_absent(const void* job) const override {
    return !static_cast<const Job*>(job)->eviction.has_value();
  }
  bool is_same(const void*, const void*) const override { return false; }
  Schema schema(const record::Notes&, Schemas&) const override {
    return {{"$ref", "#/components/schemas/Sentence"}};
  }
};

/// Sentences about the evictions in a forecast. When reading, the facts next to them are used
/// instead.
class SentencesOfEvictions final : public record::Type {
 public:
  void write(JsonWriter& json, const void* forecast, record::Form) const override {
    json.texts(words::evictions(*static_cast<const Forecast*>(forecast)));
  }
  void read(const Input&, void*) const override {}
  bool is_same(const void*, const void*) const override { return false; }
  Schema schema(const record::Notes&, Schemas&) const override {
    return record::schema_of_list({{"$ref", "#/components/schemas/Sentence"}});
  }
};

/// A row that is computed from the whole record, and only sent.
record::Row sent_row(const char* name, std::shared_ptr<const record::Type> type,
                     record::Notes notes) {
  notes.kept = Kept::kSentOnly;
  return {.name = name,
          .wire_name = name,
          .notes = notes,
          .type = std::move(type),
          .member = [](const void* record) { return record; }};
}

void append(std::vector<record::Row>& rows, std::vector<record::Row> more) {
  for (record::Row& row : more) rows.push_back(std::move(row));
}

std::vector<record::Row> rows_of_reasons() {
  std::vector<record::Row> rows =
      reason_rows<&Job::reason>("reason_details", "Why it waits, or what it does now.");
  rows.push_back(sent_row("eviction", std::make_shared<SentenceOfEviction>(),
                          {.help = "Why it is being evicted."}));
  rows.push_back(fact_row<&Job::eviction>("eviction_fact", {.help = "`eviction` as data."}));
  return rows;
}

std::vector<record::Row> rows_of_attempts() {
  return {
      field<&Job::may_start>("may_start",
                             {.help = "While it waits: when resources are expected to be free."}),
      field<&Job::attempt>(
          "attempt",
          {.help = "The number of times its gang was started.", .sent = Sent::kAlways, .least = 0}),
      field<&Job::restarts>("restarts",
                            {.help = "The number of attempts that were abandoned for another.",
                             .sent = Sent::kAlways,
                             .least = 0}),
      field<&Job::retries_used>("retries_used", {.sent = Sent::kAlways, .least = 0}),
      field<&Job::avoided_nodes>("avoided_nodes", {.help = "The nodes that its retry rules avoid.",
                                                   .sent = Sent::kAlways,
                                                   .schema = R"({"items": {"type": "string"}})"}),
      field<&Job::suspended>("suspended",
                             {.help = "It waits only for `resume`.", .sent = Sent::kAlways}),
      field<&Job::stop_requested>("stop_requested", {.sent = Sent::kAlways}),
      field<&Job::submitted>("submitted", {.need = Need::kRequired}),
      field<&Job::started>("started", {.help = "When it became Running."}),
      field<&Job::ended>("ended"),
  };
}

std::vector<record::Row> rows_of_job() {
  std::vector<record::Row> rows = {
      field<&Job::id>("id", {.help = "Never reused.", .need = Need::kRequired}),
      field<&Job::origin>("origin", {.help = "Where it was made from, if not from a spec alone."}),
      field<&Job::awaited>("awaited", {.help = "The jobs of `after` in its spec, in that order."}),
      field<&Job::owner>("owner", {.help = "The user who submitted it.", .sent = Sent::kAlways}),
      field<&Job::spec>("spec", {.need = Need::kRequired}),
      field<&Job::phase>("phase", {.need = Need::kRequired}),
  };
  std::vector<record::Row> ends = {
      field<&Job::exit_code>(
          "exit_code", {.help = "The exit code of the deciding task, after the job has ended."}),
      field<&Job::failure>("failure"),
      field<&Job::launch>(
          "launch", {.help = "For the last attempt of a job of kind `mpi`, once it is known."}),
      field<&Job::sealed_seed>("sealed_seed", {.kept = Kept::kStoreOnly}),
      field<&Job::kept_until>(
          "kept_until",
          {.help = "For an ended job: when the server removes it.", .kept = Kept::kSentOnly}),
      field<&Job::unreadable>("unreadable", {.help = "The store's record of the job is unreadable: "
                                                     "only its id, name and project are known.",
                                             .kept = Kept::kSentOnly}),
      field<&Job::progress>("progress", {.help = "As reported by its program; for running jobs, "
                                                 "and for ended jobs that are requested by name.",
                                         .kept = Kept::kSentOnly}),
      field<&Job::tasks>("tasks", {.sent = Sent::kAlways}),
      field<&Job::events>("events", {.sent = Sent::kAlways}),
  };
  append(rows, rows_of_reasons());
  append(rows, rows_of_attempts());
  append(rows, std::move(ends));
  return rows;
}

}  // namespace

const Table& table_of(const Job*) {
  static const Table table = record::table<Job>("Job", rows_of_job()).as_answer();
  return table;
}

const Table& table_of(const Failure*) {
  static const Table table =
      record::table<Failure>(
          "Failure",
          {field<&Failure::task>("task",
                                 {.help = "The first task at fault.", .sent = Sent::kAlways}),
           field<&Failure::rank>("rank",
                                 {.help = "The MPI rank that failed first, if known.", .least = 0}),
           sentence_row<&Failure::cause>("cause", {.need = Need::kRequired}),
           fact_row<&Failure::cause>(
               "cause_fact", {.help = "`cause` as data: its `kind`, and the fields of that kind."}),
           field<&Failure::advice>("advice", {.sent = Sent::kAlways}, As::kSentence),
           field<&Failure::last_lines>(
               "last_lines", {.help = "Its last lines.", .sent = Sent::kAlways}, As::kSentence)})
          .as_answer();
  return table;
}

const Table& table_of(const Event*) {
  static const Table table =
      record::table<Event>(
          "Event", {field<&Event::time>("time", {.help = "Unique among the events of a server.",
                                                 .need = Need::kRequired}),
                    sentence_row<&Event::what>("text", {.need = Need::kRequired}),
                    fact_row<&Event::what>(
                        "fact", {.help = "`text` as data: its `kind`, and the fields of that kind. "
                                         "Fields that are zero, empty or hidden from the caller "
                                         "are omitted. Later versions may add kinds and fields."})})
          .as_answer();
  return table;
}

const Table& table_of(const Placing*) {
  static const Table table =
      record::table<Placing>(
          "Placing",
          {field<&Placing::task>("task", {.need = Need::kRequired}),
           field<&Placing::node>("node", {.need = Need::kRequired}),
           field<&Placing::devices>("devices", {.sent = Sent::kAlways, .least = 0}),
           field<&Placing::gpu_share_milli>(
               "gpu_share", {.sent = Sent::kAlways, .schema = R"({"minimum": 0, "maximum": 1})"},
               As::kMilli)})
          .as_answer();
  return table;
}

const Table& table_of(const ExpectedEviction*) {
  static const Table table =
      record::table<ExpectedEviction>(
          "ExpectedEviction", {fact_row<&ExpectedEviction::job>("job", {.sent = Sent::kAlways}),
                               fact_row<&ExpectedEviction::why>("why", {.sent = Sent::kAlways})})
          .as_answer();
  return table;
}

const Table& table_of(const Forecast*) {
  static const Table table = [] {
    std::vector<record::Row> rows = {
        field<&Forecast::members>(
            "members", {.help = "The number of members of the array. The forecast is that of its "
                                "first member."}),
        field<&Forecast::starts_now>("starts_now", {.need = Need::kRequired}),
        field<&Forecast::placing>("placing",
                                  {.help = "Where it would start now.", .sent = Sent::kAlways}),
        sent_row(
            "evictions", std::make_shared<SentencesOfEvictions>(),
            {.help = "The jobs that would be evicted for it, and why.", .sent = Sent::kAlways}),
        field<&Forecast::evictions>(
            "eviction_facts", {.help = "The same as data, for the jobs that the caller may see.",
                               .sent = Sent::kAlways}),
        field<&Forecast::hides_evictions>(
            "hides_evictions", {.help = "Jobs that the caller may not see would be evicted, too.",
                                .sent = Sent::kAlways}),
    };
    append(rows, reason_rows<&Forecast::reason>("details", "Why it would wait."));
    append(rows, {field<&Forecast::may_start>("may_start"),
                  field<&Forecast::before>(
                      "before", {.help = "The project without the job.", .need = Need::kRequired}),
                  field<&Forecast::after>(
                      "after", {.help = "The project with the job.", .need = Need::kRequired})});
    return record::table<Forecast>("Forecast", std::move(rows)).as_answer();
  }();
  return table;
}

const Table& table_of(const Explanation*) {
  static const Table table = [] {
    std::vector<record::Row> rows = {
        field<&Explanation::name>("name", {.need = Need::kRequired}),
        field<&Explanation::phase>("phase", {.need = Need::kRequired}),
        field<&Explanation::constraint>(
            "constraint",
            {.help = "A code for programs (`room`, `quota`, ...). Empty: the job does not wait.",
             .sent = Sent::kAlways}),
    };
    append(rows, reason_rows<&Explanation::reason>("details", "Why it waits."));
    append(rows,
           {field<&Explanation::may_start>("may_start"),
            field<&Explanation::position>(
                "position", {.help = "The position in the queue, from 1. 0: the job does not wait.",
                             .sent = Sent::kAlways,
                             .least = 0}),
            field<&Explanation::events>("events", {.sent = Sent::kAlways})});
    return record::table<Explanation>("Explanation", std::move(rows)).as_answer();
  }();
  return table;
}

}  // namespace muster::job
