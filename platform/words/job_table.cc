#include "words/job_table.h"

#include "job/fact_json.h"
#include "record/field.h"
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
using record::Table;
using record::Told;

namespace {

/// A fact as data: {"kind": ..., its fields}.
template <class T, std::optional<T> (*from_json)(const record::Value&)>
class FactType final : public record::Type {
 public:
  void write(JsonWriter& json, const void* value, record::Form) const override {
    write_data(json, *static_cast<const T*>(value));
  }
  /// One that is not known leaves what its sentence said.
  void read(const Input& input, void* value) const override {
    if (auto known = from_json(input.value)) {
      *static_cast<T*>(value) = *std::move(known);
    } else if (input.form == record::Form::kStore) {
      input.note("is not a fact that is known");
    }
  }
  bool is_same(const void* a, const void* b) const override {
    return *static_cast<const T*>(a) == *static_cast<const T*>(b);
  }
  Schema schema(const record::Notes&, Schemas&) const override { return {{"type", "object"}}; }
};

template <class T, std::optional<T> (*from_json)(const record::Value&)>
record::Row fact_row(record::Row row) {
  row.type = std::make_shared<FactType<T, from_json>>();
  return row;
}

/// Sentences of a job's: only told, and read where the facts behind them are not known.
class SentencesOfDetails final : public record::Type {
 public:
  void write(JsonWriter& json, const void* job, record::Form) const override {
    json.open('[');
    for (const std::string& each : words::details(static_cast<const Job*>(job)->reason)) {
      json.prose(each);
    }
    json.close(']');
  }
  void read(const Input& input, void* job) const override {
    record::read_list(input, "texts", [&](const Input& element) {
      auto text = record::read_text(element);
      if (text) static_cast<Job*>(job)->reason.details.emplace_back(Remark{*std::move(text)});
    });
  }
  bool is_same(const void*, const void*) const override { return false; }
  Schema schema(const record::Notes&, Schemas&) const override {
    return record::schema_of_list({{"$ref", "#/components/schemas/Sentence"}});
  }
};

class SentenceOfEviction final : public record::Type {
 public:
  void write(JsonWriter& json, const void* job, record::Form) const override {
    json.prose(words::sentence(*static_cast<const Job*>(job)->eviction));
  }
  void read(const Input& input, void* job) const override {
    auto text = record::read_text(input);
    if (text) static_cast<Job*>(job)->eviction = SlurmEnded{.text = *std::move(text)};
  }
  bool is_absent(const void* job) const override {
    return !static_cast<const Job*>(job)->eviction.has_value();
  }
  bool is_same(const void*, const void*) const override { return false; }
  Schema schema(const record::Notes&, Schemas&) const override {
    return {{"$ref", "#/components/schemas/Sentence"}};
  }
};

class FactOfEviction final : public record::Type {
 public:
  void write(JsonWriter& json, const void* why, record::Form) const override {
    write_data(json, **static_cast<const std::optional<Eviction>*>(why));
  }
  void read(const Input& input, void* why) const override {
    if (auto known = eviction_of(input.value)) {
      *static_cast<std::optional<Eviction>*>(why) = std::move(known);
    } else if (input.form == record::Form::kStore) {
      input.note("is not a fact that is known");
    }
  }
  bool is_absent(const void* why) const override {
    return !static_cast<const std::optional<Eviction>*>(why)->has_value();
  }
  bool is_same(const void* a, const void* b) const override {
    return *static_cast<const std::optional<Eviction>*>(a) ==
           *static_cast<const std::optional<Eviction>*>(b);
  }
  Schema schema(const record::Notes&, Schemas&) const override { return {{"type", "object"}}; }
};

/// A row that is made of the whole job, and only told.
record::Row told_row(const char* name, std::shared_ptr<const record::Type> type,
                     record::Notes notes) {
  notes.kept = Kept::kToldOnly;
  return {.name = name,
          .wire_name = name,
          .notes = notes,
          .type = std::move(type),
          .member = [](const void* job) { return job; }};
}

std::string reason_told(const Job& job) {
  return words::sentence(job.reason);
}
void take_reason(Job& job, std::string text) {
  job.reason = Remark{std::move(text)};
}
std::string event_told(const Event& event) {
  return words::sentence(event.what);
}
void take_event(Event& event, std::string text) {
  event.what = Remark{std::move(text)};
}

std::string cause_told(const Failure& failure) {
  return words::sentence(failure.cause);
}
void take_cause(Failure& failure, std::string text) {
  failure.cause = Remark{std::move(text)};
}

std::vector<record::Row> rows_of_reasons() {
  return {
      record::computed<Job, reason_told, take_reason>(
          "reason", {.help = "Why it waits, or what it does right now."}),
      told_row("reason_details", std::make_shared<SentencesOfDetails>(),
               {.help = "Who holds what it needs, and what would help.", .told = Told::kAlways}),
      fact_row<Reason, reason_of>(record::typed_field<&Job::reason>(
          "reason_facts", nullptr,
          {.help = "What `reason` says, as data: its `kind`, and the fields of "
                   "that; `details` has such an object for each fact behind "
                   "it."})),
      told_row("eviction", std::make_shared<SentenceOfEviction>(),
               {.help = "It is being evicted, and why."}),
      record::typed_field<&Job::eviction>("eviction_fact", std::make_shared<FactOfEviction>(),
                                          {.help = "What `eviction` says, as data."}),
  };
}

std::vector<record::Row> rows_of_attempts() {
  return {
      field<&Job::may_start>("may_start",
                             {.help = "While it waits: when room is expected to be free."}),
      field<&Job::attempt>(
          "attempt",
          {.help = "How often its gang was started.", .told = Told::kAlways, .least = 0}),
      field<&Job::restarts>("restarts", {.help = "How often an attempt was given up for another.",
                                         .told = Told::kAlways,
                                         .least = 0}),
      field<&Job::retries_used>("retries_used", {.told = Told::kAlways, .least = 0}),
      field<&Job::avoided_nodes>("avoided_nodes", {.help = "By its retry rules.",
                                                   .told = Told::kAlways,
                                                   .schema = R"({"items": {"type": "string"}})"}),
      field<&Job::suspended>("suspended", {.help = "It waits for `resume`, and for nothing else.",
                                           .told = Told::kAlways}),
      field<&Job::stop_requested>("stop_requested", {.told = Told::kAlways}),
      field<&Job::submitted>("submitted", {.need = Need::kRequired}),
      field<&Job::started>("started", {.help = "When it entered Running."}),
      field<&Job::ended>("ended"),
  };
}

std::vector<record::Row> rows_of_job() {
  std::vector<record::Row> rows = {
      field<&Job::id>("id", {.help = "Never given again.", .need = Need::kRequired}),
      field<&Job::owner>("owner", {.help = "Who submitted it.", .told = Told::kAlways}),
      field<&Job::spec>("spec", {.need = Need::kRequired}),
      field<&Job::phase>("phase", {.need = Need::kRequired}),
  };
  std::vector<record::Row> ends = {
      field<&Job::exit_code>("exit_code",
                             {.help = "Of the task that decides, once the job has ended."}),
      field<&Job::failure>("failure"),
      field<&Job::launch>(
          "launch", {.help = "Of the last attempt of a job of kind `mpi`, once it is known."}),
      field<&Job::sealed_seed>("sealed_seed", {.kept = Kept::kStoreOnly}),
      field<&Job::kept_until>(
          "kept_until",
          {.help = "Of an ended job: when it is removed by itself.", .kept = Kept::kToldOnly}),
      field<&Job::unreadable>(
          "unreadable", {.help = "The store has a record of the job that cannot be read: only its "
                                 "id, name and project are known.",
                         .kept = Kept::kToldOnly}),
      field<&Job::progress>("progress",
                            {.help = "As its program reports it: of a job that runs, and of one "
                                     "that has ended where it is asked for by its name.",
                             .kept = Kept::kToldOnly}),
      field<&Job::tasks>("tasks", {.told = Told::kAlways}),
      field<&Job::events>("events", {.told = Told::kAlways}),
  };
  for (auto* more : {rows_of_reasons, rows_of_attempts}) {
    for (record::Row& row : more()) rows.push_back(std::move(row));
  }
  for (record::Row& row : ends) rows.push_back(std::move(row));
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
                                 {.help = "The first task at fault.", .told = Told::kAlways}),
           field<&Failure::rank>("rank", {.help = "Of the MPI program, where one is known to have "
                                                  "failed first.",
                                          .least = 0}),
           record::computed<Failure, cause_told, take_cause>("cause", {.need = Need::kRequired}),
           fact_row<FailureCause, failure_cause_of>(record::typed_field<&Failure::cause>(
               "cause_fact", nullptr,
               {.help = "What `cause` says, as data: its `kind`, and the fields of that."})),
           field<&Failure::advice>("advice", {.told = Told::kAlways}, As::kSentence),
           field<&Failure::last_lines>(
               "last_lines", {.help = "Its last lines.", .told = Told::kAlways}, As::kSentence)})
          .as_answer();
  return table;
}

const Table& table_of(const Event*) {
  static const Table table =
      record::table<Event>(
          "Event",
          {field<&Event::time>("time", {.help = "No two events of one server have the same.",
                                        .need = Need::kRequired}),
           record::computed<Event, event_told, take_event>("text", {.need = Need::kRequired}),
           fact_row<Fact, fact_of>(record::typed_field<&Event::what>(
               "fact", nullptr,
               {.help =
                    "What `text` says, as data: its `kind`, and the fields of that. Fields that "
                    "are zero, empty or not the caller's to see are left out; more kinds and "
                    "fields may come."}))})
          .as_answer();
  return table;
}

}  // namespace muster::job
