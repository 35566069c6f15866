#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/slurm/listing.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/slurm_error.h"
#include "engine/slurm/slurm_programs.h"
#include "engine/slurm/submission.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// Programs other than sbatch that run at the same time.
constexpr size_t kOthersAtOnce = 4;

constexpr std::array<const char*, 5> kPrograms{"sbatch", "squeue", "scancel", "sinfo", "scontrol"};

/// The id in the output of sbatch --parsable: "17" or "17;cluster", on the last line.
std::optional<uint64_t> submitted_id(std::string_view output) {
  const std::vector<std::string> lines = base::split(output, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!line->empty()) return base::number_of<uint64_t>(line->substr(0, line->find(';')));
  }
  return std::nullopt;
}

Error lost_answer(std::string why) {
  return Error{.code = ErrorCode::kTimeout,
               .what = "a job was submitted to Slurm, and the answer was lost: " + std::move(why)};
}

std::string how(const ProgramEnd& end) {
  if (end.was_late) return "it did not answer in time, and was killed";
  if (end.was_cut) return "it printed too much, and was killed";
  if (end.code < 0) return "it was killed by a signal";
  return "it ended with code " + std::to_string(end.code) + " and printed nothing";
}

Result<uint64_t> submit_answer(Result<ProgramEnd> end, const Submission& submission) {
  if (!end) return std::move(end).error();
  if (end->code == 0) {
    if (const auto id = submitted_id(end->output)) return *id;
    return lost_answer("sbatch did not print the id of a job");
  }
  if (end->code < 0 || end->errors.empty()) return lost_answer("sbatch: " + how(*end));
  return refusal_of(end->errors, submission);
}

/// The output of a program that has succeeded.
Result<std::string> answer_of(Result<ProgramEnd> end, const char* what, const std::string& name) {
  if (!end) return std::move(end).error();
  // An unknown field is omitted from each line, and is not an error for the program.
  if (end->errors.find("format specification") != std::string::npos) {
    return Error{.code = ErrorCode::kInternal,
                 .what = std::string(what) + ": " + sentence_of(end->errors),
                 .advice = "Slurm 21.08 or later is required; check sinfo --version"};
  }
  if (end->code == 0) return std::move(end->output);
  const bool has_spoken = end->code > 0 && !end->errors.empty();
  return failure_of(what, has_spoken ? end->errors : name + ": " + how(*end));
}

/// Messages for a job that is already over or forgotten.
bool is_no_fault(std::string_view line) {
  static constexpr std::array<std::string_view, 4> kSigns{
      "Invalid job id", "already completing or completed", "has already finished",
      "Job/step already"};
  return line.empty() || std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
           return line.find(sign) != std::string_view::npos;
         });
}

Result<void> cancel_answer(Result<ProgramEnd> end) {
  constexpr const char* kWhat = "jobs cannot be cancelled in Slurm";
  if (!end) return std::move(end).error();
  if (end->code == 0) return {};
  const std::vector<std::string> lines = base::split(end->errors, '\n');
  if (end->code > 0 && !end->errors.empty() &&
      std::all_of(lines.begin(), lines.end(), is_no_fault)) {
    return {};
  }
  return answer_of(std::move(end), kWhat, "scancel").error();
}

/// A value among lines such as "SLURM_VERSION           = 22.05.8".
std::string config_value(std::string_view config, std::string_view name) {
  for (const std::string& line : base::split(config, '\n')) {
    const size_t sign = line.find('=');
    if (sign == std::string::npos || !line.starts_with(name)) continue;
    if (line.find_first_not_of(' ', name.size()) != sign) continue;
    const size_t first = line.find_first_not_of(' ', sign + 1);
    if (first == std::string::npos) return {};
    return line.substr(first, line.find_last_not_of(' ') - first + 1);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<CommandClient>> CommandClient::open(base::EventLoop& loop,
                                                           CommandOptions options) {
  std::unique_ptr<CommandClient> client(new CommandClient(loop, std::move(options)));
  for (const char* name : kPrograms) {
    const auto found = base::find_program(client->program(name), client->environment_);
    if (found) continue;
    return Error{.code = ErrorCode::kNotFound,
                 .what = "Slurm's programs are not installed: " + found.error().what,
                 .advice =
                     "install them (apt-get install slurm-client), or name the address of "
                     "slurmrestd"};
  }
  return client;
}

CommandClient::CommandClient(base::EventLoop& loop, CommandOptions options)
    : loop_(loop),
      options_(std::move(options)),
      environment_(base::current_environment()),
      submits_(loop, options_.submits_at_once),
      others_(loop, kOthersAtOnce) {}

std::string CommandClient::program(const std::string& name) const {
  return options_.folder.empty() ? name : options_.folder + "/" + name;
}

void CommandClient::ask(const std::string& name, std::vector<std::string> arguments,
                        ProgramRunner::Then then) {
  arguments.insert(arguments.begin(), program(name));
  others_.run({.argv = std::move(arguments),
               .environment = environment_for_asking(environment_),
               .input = {},
               .patience = options_.patience},
              std::move(then));
}

void CommandClient::submit(Submission submission, Then<uint64_t> then) {
  auto script = batch_script(submission);
  if (!script) {
    loop_.post([alive = std::weak_ptr(alive_), then = std::move(then), error = script.error()] {
      if (alive.lock()) then(error);
    });
    return;
  }
  ProgramPlan plan{.argv = {program("sbatch"), "--parsable"},
                   .environment = environment_for_submitting(environment_, submission.environment),
                   .input = *std::move(script),
                   .patience = options_.patience};
  submission.script.clear();
  submits_.run(std::move(plan),
               [then = std::move(then), submission = std::move(submission)](
                   Result<ProgramEnd> end) { then(submit_answer(std::move(end), submission)); });
}

void CommandClient::jobs(Then<std::vector<ListedJob>> then) {
  ask("squeue", squeue_arguments(::geteuid()), [then = std::move(then)](Result<ProgramEnd> end) {
    const auto text = answer_of(std::move(end), "Slurm's queue cannot be read", "squeue");
    then(text ? read_squeue(*text) : text.error());
  });
}

void CommandClient::past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) {
  if (ids.empty() || !base::find_program(program("sacct"), environment_)) {
    loop_.post([alive = std::weak_ptr(alive_), then = std::move(then)] {
      if (alive.lock()) then(std::vector<ListedJob>{});
    });
    return;
  }
  ask("sacct", sacct_arguments(ids), [then = std::move(then)](Result<ProgramEnd> end) {
    if (end && end->errors.find("accounting storage is disabled") != std::string::npos) {
      return then(std::vector<ListedJob>{});
    }
    const auto text = answer_of(std::move(end), "Slurm's accounting cannot be read", "sacct");
    then(text ? read_sacct(*text) : text.error());
  });
}

void CommandClient::cancel(std::vector<uint64_t> ids, Then<void> then) {
  if (ids.empty()) {
    loop_.post([alive = std::weak_ptr(alive_), then = std::move(then)] {
      if (alive.lock()) then({});
    });
    return;
  }
  std::vector<std::string> arguments;
  for (const uint64_t id : ids) arguments.push_back(std::to_string(id));
  ask("scancel", std::move(arguments),
      [then = std::move(then)](Result<ProgramEnd> end) { then(cancel_answer(std::move(end))); });
}

void CommandClient::nodes(Then<std::vector<ListedNode>> then) {
  ask("sinfo", sinfo_arguments(), [then = std::move(then)](Result<ProgramEnd> end) {
    const auto text = answer_of(std::move(end), "Slurm's nodes cannot be read", "sinfo");
    then(text ? read_sinfo(*text) : text.error());
  });
}

void CommandClient::facts(Then<ClientFacts> then) {
  ask("scontrol", {"show", "config"}, [then = std::move(then)](Result<ProgramEnd> end) {
    const auto text = answer_of(std::move(end), "Slurm's controller does not answer", "scontrol");
    if (!text) return then(text.error());
    then(ClientFacts{.way = "Slurm's programs",
                     .version = config_value(*text, "SLURM_VERSION"),
                     .api = "parseable output"});
  });
}

}  // namespace muster::engine::slurm
