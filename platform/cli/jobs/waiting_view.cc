#include "cli/jobs/waiting_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/amount_words.h"
#include "cli/common/table.h"
#include "job/fact_json.h"
#include "words/sentence.h"

namespace muster::cli::jobs {

namespace {

using base::Time;

std::string priority_words(const job::Scheduling& scheduling) {
  return std::to_string(job::priority_of(scheduling));
}

/// "in 5m"; a moment that has come is now.
std::string time_until(const std::optional<Time>& then, Time now) {
  if (!then) return "-";
  return *then <= now ? "now" : "in " + age(now, *then);
}

std::string may_start_words(const std::optional<Time>& then, Time now) {
  return then ? base::to_rfc3339(*then, 0) + " (" + time_until(then, now) + ")" : "";
}

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string devices_words(const job::Placing& placing) {
  std::string text;
  for (const int device : placing.devices) {
    text += (text.empty() ? "GPU " : ", ") + std::to_string(device);
  }
  const bool part = placing.gpu_share_milli > 0 && placing.gpu_share_milli < 1000;
  if (part && !text.empty()) text += " (" + base::format_milli(placing.gpu_share_milli) + " of it)";
  return text;
}

std::string placing_table(const std::vector<job::Placing>& placing) {
  Table table({{"TASK"}, {"NODE"}, {"GPUS"}});
  for (const job::Placing& place : placing) {
    table.add({place.task, place.node, devices_words(place)});
  }
  return table.to_string("  ");
}

/// What the job makes of its project: GPUs, and of CPUs and memory those that are asked for at all.
std::string effect_table(const job::ProjectStatus& before, const job::ProjectStatus& after) {
  Table table({{""}, {"BEFORE", true}, {"AFTER", true}});
  const auto words = [](const job::Share& of) {
    return amounts_words(of.gpu_milli, of.cpu_milli, of.memory_bytes);
  };
  const auto asked_for = [&](job::Share of) {
    if (after.requested.cpu_milli == 0) of.cpu_milli.reset();
    if (after.requested.memory_bytes == 0) of.memory_bytes.reset();
    return words(of);
  };
  const auto amounts = [&](const job::ProjectStatus::Amounts& of) {
    return asked_for({of.gpu_milli, of.cpu_milli, of.memory_bytes});
  };
  table.add({"quota", words(before.deserved), words(after.deserved)});
  table.add({"fair share", asked_for(before.fair_share), asked_for(after.fair_share)});
  table.add({"used", amounts(before.allocated), amounts(after.allocated)});
  table.add({"not preemptible", amounts(before.allocated_non_preemptible),
             amounts(after.allocated_non_preemptible)});
  table.add({"asked for", amounts(before.requested), amounts(after.requested)});
  return table.to_string("  ");
}

}  // namespace

std::string queue_table(const std::vector<job::Job>& jobs, Time now) {
  Table table({{"POS", true},
               {"JOB"},
               {"PROJECT"},
               {"PRIORITY", true},
               {"NEEDS"},
               {"WAITING", true},
               {"MAY START"},
               {"REASON"}});
  int position = 0;
  for (const job::Job& job : jobs) {
    table.add({job.suspended ? "-" : std::to_string(++position), job.spec.name, job.spec.project,
               priority_words(job.spec.scheduling), needs_words(job.spec), age(job.submitted, now),
               time_until(job.may_start, now), words::sentence(job.reason)});
  }
  return table.to_string();
}

std::string explanation_page(const job::Explanation& explanation, Time now) {
  std::string text(job::to_string(explanation.phase));
  text +=
      words::after_colon(explanation.reason) + "\n" + indented(words::details(explanation.reason));
  const std::string facts = fields({
      {"POSITION", explanation.position > 0 ? std::to_string(explanation.position) : ""},
      {"MAY START", may_start_words(explanation.may_start, now)},
  });
  if (!facts.empty()) text += "\n" + facts;
  if (!explanation.events.empty()) text += "\nEVENTS\n";
  for (const job::Event& event : explanation.events) {
    text += "  " + base::to_rfc3339(event.time) + "  " + words::sentence(event.what) + "\n";
  }
  return text;
}

std::string forecast_page(const job::JobSpec& spec, const job::Forecast& forecast, Time now) {
  std::string text = forecast.starts_now ? "would start now" : "would wait";
  text += words::after_colon(forecast.reason) + "\n" + indented(words::details(forecast.reason));
  const std::string may_start = may_start_words(forecast.may_start, now);
  if (!forecast.starts_now && !may_start.empty()) text += "\nMAY START  " + may_start + "\n";
  if (!forecast.placing.empty()) text += "\nPLACES\n" + placing_table(forecast.placing);
  const std::vector<std::string> evictions = words::evictions(forecast);
  if (!evictions.empty()) text += "\nEVICTIONS\n" + indented(evictions);
  text += "\nPROJECT " + spec.project + "\n" + effect_table(forecast.before, forecast.after);
  return text;
}

std::vector<JobEvent> merged_events(const std::vector<job::Job>& jobs) {
  std::vector<JobEvent> events;
  for (const job::Job& job : jobs) {
    for (const job::Event& event : job.events) events.push_back({job.spec.name, event});
  }
  std::stable_sort(events.begin(), events.end(), [](const JobEvent& left, const JobEvent& right) {
    return left.event.time < right.event.time;
  });
  return events;
}

std::string event_table(const std::vector<JobEvent>& events) {
  Table table({{"TIME"}, {"JOB"}, {"EVENT"}});
  for (const JobEvent& event : events) {
    table.add({base::to_rfc3339(event.event.time), event.job, words::sentence(event.event.what)});
  }
  return table.to_string();
}

std::string event_line(const JobEvent& event) {
  return base::to_rfc3339(event.event.time) + "  " + event.job + "  " +
         words::sentence(event.event.what) + "\n";
}

std::string events_json(const std::vector<JobEvent>& events) {
  constexpr int kNanoseconds = 9;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const JobEvent& event : events) {
    list.push_back({{"time", base::to_rfc3339(event.event.time, kNanoseconds)},
                    {"job", event.job},
                    {"text", words::sentence(event.event.what)},
                    {"fact", nlohmann::ordered_json::parse(job::data_of(event.event.what))}});
  }
  const nlohmann::ordered_json json{{"events", std::move(list)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster::cli::jobs
