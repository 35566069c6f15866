#include "api/job_query.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "api/fields.h"
#include "api/routes.h"
#include "base/bytes.h"
#include "base/text.h"
#include "base/units.h"
#include "job/log_record.h"
#include "job/metric.h"
#include "record/field.h"
#include "record/input.h"
#include "words/job_table.h"

namespace muster::api {

using base::Fault;
using job::Job;
using job::JobOrigin;
using job::Phase;

namespace {

std::vector<std::string> phase_words() {
  std::vector<std::string> words;
  for (const Phase phase : job::kAllPhases) words.emplace_back(job::to_string(phase));
  words.insert(words.end(), {"active", "ended"});
  return words;
}

/// Adds the phases that a word names; false: none.
bool take_phase(const std::string& word, std::vector<Phase>& into) {
  const std::string lower = base::lower_case(word);
  const size_t before = into.size();
  for (const Phase phase : job::kAllPhases) {
    const bool is_meant = lower == base::lower_case(job::to_string(phase)) ||
                          (lower == "active" && !job::is_final(phase)) ||
                          (lower == "ended" && job::is_final(phase));
    if (is_meant) into.push_back(phase);
  }
  return into.size() > before;
}

std::string take_phases(const std::string& words, std::vector<Phase>& into) {
  for (const std::string& word : base::split(words, ',')) {
    if (!take_phase(word, into)) return record::not_a_choice(word, phase_words());
  }
  return "";
}

std::string take_kinds(const std::string& words, std::vector<job::Kind>& into) {
  for (const std::string& word : base::split(words, ',')) {
    const auto kind = job::kind_of(word);
    if (!kind) return record::not_a_choice(word, {"single", "mpi", "grpc", "torch"});
    into.push_back(*kind);
  }
  return "";
}

constexpr std::array<std::pair<JobOrigin::Kind, std::string_view>, 4> kOrigins{
    {{JobOrigin::Kind::kRerun, "rerun"},
     {JobOrigin::Kind::kArray, "array"},
     {JobOrigin::Kind::kSweep, "sweep"},
     {JobOrigin::Kind::kSchedule, "schedule"}}};

/// "array", or "array/train".
std::string origin_text(const OriginFilter& filter) {
  std::string text;
  for (const auto& [kind, name] : kOrigins) {
    if (kind == filter.kind) text = name;
  }
  return filter.of.empty() ? text : text + "/" + filter.of;
}

std::string take_origin(const std::string& text, std::optional<OriginFilter>& into) {
  const size_t slash = text.find('/');
  const std::string word = text.substr(0, slash);
  if (text.ends_with('/')) return in_quotes(text) + " names no object after '/'";
  for (const auto& [kind, name] : kOrigins) {
    if (name != word) continue;
    into =
        OriginFilter{.kind = kind, .of = slash == std::string::npos ? "" : text.substr(slash + 1)};
    return "";
  }
  return record::not_a_choice(word, {"rerun", "array", "sweep", "schedule"});
}

/// A condition on a label: "NAME", "NAME=VALUE", "!NAME", "NAME!=VALUE". Names contain no '=' and
/// no '!'.
struct LabelFilter {
  std::string_view name;
  std::optional<std::string_view> value;
  bool is_negated = false;
};

LabelFilter label_filter(std::string_view text) {
  LabelFilter filter;
  const size_t equals = text.find('=');
  filter.name = text.substr(0, equals);
  if (equals != std::string_view::npos) filter.value = text.substr(equals + 1);
  if (filter.value && filter.name.ends_with('!')) {
    filter.is_negated = true;
    filter.name.remove_suffix(1);
  } else if (!filter.value && filter.name.starts_with('!')) {
    filter.is_negated = true;
    filter.name.remove_prefix(1);
  }
  return filter;
}

bool has_label(const JobFacts& job, const std::string& condition) {
  const LabelFilter filter = label_filter(condition);
  if (!job.has_labels()) return filter.is_negated;
  const auto found = job.label(filter.name);
  const bool has = found && (!filter.value || *found == *filter.value);
  return has != filter.is_negated;
}

/// The bound of a range of times that a parameter sets; nullptr: it sets none.
std::optional<base::Time>* bound_of(JobQuery& query, std::string_view parameter) {
  for (auto& [name, span] : {std::pair<std::string_view, TimeSpan*>{"submitted", &query.submitted},
                             {"started", &query.started},
                             {"ended", &query.ended}}) {
    if (!parameter.starts_with(name)) continue;
    if (parameter.substr(name.size()) == "_after") return &span->after;
    if (parameter.substr(name.size()) == "_before") return &span->before;
  }
  return nullptr;
}

std::string not_an_order(const std::string& value) {
  const std::vector<std::string> names = order_names();
  return in_quotes(value) + " is invalid: expected one of " + base::joined(names) +
         ", or one of them after '-'" + record::did_you_mean(base::shortened(value), names);
}

std::string take_limit(const std::string& value, int& into) {
  const auto limit = base::number_of<int>(value);
  const bool right = limit && *limit >= 1 && *limit <= kMostJobs;
  into = right ? *limit : 1;
  return right ? "" : in_quotes(value) + " is not a number from 1 to " + std::to_string(kMostJobs);
}

/// The fault of one parameter; empty if it was stored in `query`.
std::string take_job_parameter(JobQuery& query, const std::string& name, const std::string& value) {
  if (name == "project" || name == "owner" || name == "prefix") {
    (name == "project" ? query.project : name == "owner" ? query.owner : query.prefix) = value;
    return "";
  }
  if (name == "cursor" || name == "text") {
    (name == "cursor" ? query.cursor : query.text) = value;
    return "";
  }
  if (name == "label") {
    query.labels.push_back(value);
    return label_filter(value).name.empty()
               ? in_quotes(value) + " is not NAME, NAME=VALUE, !NAME or NAME!=VALUE"
               : "";
  }
  if (name == "phase") return take_phases(value, query.phases);
  if (name == "kind") return take_kinds(value, query.kinds);
  if (name == "origin") return take_origin(value, query.origin);
  if (name == "top") return take_flag(value, query.top);
  if (name == "count") return take_flag(value, query.count);
  if (std::optional<base::Time>* const bound = bound_of(query, name)) {
    *bound = parse_rfc3339(value);
    return *bound ? "" : in_quotes(value) + " is not a time such as 2026-01-31T12:34:56Z";
  }
  if (name == "sort") {
    const auto order = order_of(value);
    query.order = order.value_or(JobOrder::kOldestFirst);
    return order ? "" : not_an_order(value);
  }
  if (name == "limit") return take_limit(value, query.limit);
  return unknown_parameter(
      name, {"project", "phase", "owner", "prefix", "label", "kind", "text", "submitted_after",
             "submitted_before", "started_after", "started_before", "ended_after", "ended_before",
             "origin", "top", "sort", "limit", "cursor", "count"});
}

}  // namespace

bool TimeSpan::contains(const std::optional<base::Time>& time) const {
  if (is_none()) return true;
  return time && (!after || *time >= *after) && (!before || *time < *before);
}

JobFilter::JobFilter(const JobQuery& query)
    : query_(query), has_conditions_(query.top || !takes_every_job(query)) {
  for (const std::string& word : base::split(base::lower_case(query.text), ' ')) {
    if (!word.empty()) words_.push_back(word);
  }
  for (const Phase phase : query.phases) phases_ |= 1U << static_cast<int>(phase);
  if (query.phases.empty()) phases_ = ~0U;
  const auto has = [this](Phase phase) { return (phases_ >> static_cast<int>(phase) & 1U) != 0; };
  takes_unphased_ = has(Phase::kQueued) && has(Phase::kRunning);
}

bool JobFilter::meets_conditions(const JobFacts& job) const {
  if (query_.project && *query_.project != job.project) return false;
  if (query_.owner && *query_.owner != job.owner) return false;
  if (query_.prefix && !job.name.starts_with(*query_.prefix)) return false;
  if (!query_.kinds.empty() &&
      std::find(query_.kinds.begin(), query_.kinds.end(), job.kind) == query_.kinds.end()) {
    return false;
  }
  if (!query_.submitted.contains(job.submitted) || !query_.started.contains(job.started) ||
      !query_.ended.contains(job.ended)) {
    return false;
  }
  if (query_.origin) {
    if (!job.origin || job.origin->kind != query_.origin->kind) return false;
    const std::string& of = query_.origin->of;
    if (!of.empty() && of != job.origin->name && of != job.origin->id) return false;
  }
  if (query_.top && job::is_member(job)) return false;
  return std::all_of(query_.labels.begin(), query_.labels.end(),
                     [&](const std::string& label) { return has_label(job, label); }) &&
         (words_.empty() || has_words(job));
}

bool takes_every_job(const JobQuery& query) {
  JobQuery every;
  every.top = query.top;
  every.phases = query.phases;
  every.order = query.order;
  every.limit = query.limit;
  every.cursor = query.cursor;
  every.count = query.count;
  return query == every;
}

bool JobFilter::has_words(const JobFacts& job) const {
  const std::string_view text = job.searched_text(searched_);
  return std::all_of(words_.begin(), words_.end(), [&](const std::string& word) {
    return ::memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
  });
}

bool matches(const JobQuery& query, const Job& job) {
  return JobFilter(query).takes(job::facts_of(job));
}

Parameters job_query_parameters(const JobQuery& query) {
  Parameters parameters;
  if (query.project) parameters["project"] = *query.project;
  if (query.owner) parameters["owner"] = *query.owner;
  if (query.prefix) parameters["prefix"] = *query.prefix;
  const auto list = [&](const char* name, const auto& values) {
    for (const auto& value : values) {
      std::string& words = parameters[name];
      words += (words.empty() ? "" : ",") + std::string(job::to_string(value));
    }
  };
  list("phase", query.phases);
  list("kind", query.kinds);
  for (const std::string& label : query.labels) parameters.add("label", label);
  if (!query.text.empty()) parameters["text"] = query.text;
  const auto span = [&](const std::string& name, const TimeSpan& of) {
    if (of.after) append_rfc3339(parameters[name + "_after"], *of.after);
    if (of.before) append_rfc3339(parameters[name + "_before"], *of.before);
  };
  span("submitted", query.submitted);
  span("started", query.started);
  span("ended", query.ended);
  if (query.origin) parameters["origin"] = origin_text(*query.origin);
  if (query.top) parameters["top"] = "true";
  if (query.count) parameters["count"] = "true";
  const JobQuery usual;
  if (query.order != usual.order) parameters["sort"] = order_name(query.order);
  if (query.limit != usual.limit) parameters["limit"] = std::to_string(query.limit);
  if (!query.cursor.empty()) parameters["cursor"] = query.cursor;
  return parameters;
}

base::Result<JobQuery> job_query_from_parameters(const Parameters& parameters) {
  JobQuery query;
  std::vector<Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_job_parameter(query, name, value);
      });
  if (!query.cursor.empty() && !place_of_cursor(query.order, query.cursor)) {
    faults.push_back(
        {.field = "cursor",
         .what = in_quotes(query.cursor) + " is not the 'next' of a page with the same 'sort'"});
  }
  if (faults.empty()) return query;
  return wrong_query("the query for jobs is invalid", std::move(faults));
}

const record::Table& table_of(const JobCounts*) {
  using record::field;
  const record::Notes notes{.sent = record::Sent::kAlways, .least = 0};
  static const record::Table table =
      record::table<JobCounts>(
          "JobCounts",
          {field<&JobCounts::all>("all", notes), field<&JobCounts::queued>("queued", notes),
           field<&JobCounts::starting>("starting", notes),
           field<&JobCounts::running>("running", notes),
           field<&JobCounts::succeeded>("succeeded", notes),
           field<&JobCounts::failed>("failed", notes),
           field<&JobCounts::stopped>("stopped", notes)},
          "`all`: the jobs that match the query. The others: the jobs in each phase that match the "
          "query apart from `phase`.")
          .as_answer();
  return table;
}

std::string job_page_to_json(const std::vector<const Job*>& jobs, const std::string& next,
                             const std::optional<JobCounts>& counts) {
  std::string text;
  record::JsonWriter json(text);
  json.open('{').key("jobs").open('[');
  for (const Job* job : jobs) record::write(json, *job);
  json.close(']');
  if (!next.empty()) json.key("next").text(next);
  if (counts) {
    json.key("counts");
    record::write(json, *counts);
  }
  json.close('}');
  return text;
}

const record::Table& table_of(const JobPage*) {
  static const record::Table table =
      record::table<JobPage>(
          "JobPage",
          {record::field<&JobPage::jobs>("jobs", {.need = record::Need::kRequired}),
           record::field<&JobPage::next>("next", {.help = "The `cursor` of the next page. Absent: "
                                                          "this is the last page."}),
           record::field<&JobPage::counts>("counts", {.help = "If the query has `count=true`."})})
          .as_answer(record::Unknown::kIgnored);
  return table;
}

base::Result<JobPage> job_page_from_json(std::string_view text) {
  return record::from_json<JobPage>(text, "list of jobs");
}

Parameters queue_query_parameters(const QueueQuery& query) {
  Parameters parameters;
  if (query.limit != QueueQuery().limit) parameters["limit"] = std::to_string(query.limit);
  if (!query.cursor.empty()) parameters["cursor"] = query.cursor;
  return parameters;
}

base::Result<QueueQuery> queue_query_from_parameters(const Parameters& parameters) {
  QueueQuery query;
  std::vector<Fault> faults = read_parameters(
      parameters, [&](const std::string& name, const std::string& value) -> std::string {
        if (name == "limit") return take_limit(value, query.limit);
        if (name != "cursor") return unknown_parameter(name, {"limit", "cursor"});
        query.cursor = value;
        return "";
      });
  if (faults.empty()) return query;
  return wrong_query("the query for the queue is invalid", std::move(faults));
}

const record::Table& queue_page_table() {
  static const record::Table table =
      record::table<JobPage>(
          "Jobs",
          {record::field<&JobPage::jobs>("jobs", {.need = record::Need::kRequired}),
           record::field<&JobPage::next>("next", {.help = "The `cursor` of the next page. Absent: "
                                                          "this is the last page."})})
          .as_answer(record::Unknown::kIgnored);
  return table;
}

}  // namespace muster::api
