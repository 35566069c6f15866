#include "dialects/runai/master.h"

#include <algorithm>
#include <boost/tokenizer.hpp>
#include <stdexcept>

#include "dialects/runai/claims.h"
#include "dialects/runai/key_values.h"
#include "dialects/runai/words.h"

namespace muster::dialects::runai {

namespace {

/// "--lr 0.1 --note 'a b'" as words; quotes hold one together.
Words split_words(const std::string& flag, const std::string& text, cli::FlagReader& reader) {
  using Separator = boost::escaped_list_separator<char>;
  Words words;
  try {
    const boost::tokenizer<Separator> pieces(
        text, Separator(std::string("\\"), std::string(" \t"), std::string("\"'")));
    for (const std::string& piece : pieces) {
      if (!piece.empty()) words.push_back(piece);
    }
  } catch (const std::runtime_error&) {
    reader.fault(flag, "'" + text + "' has a '\\' that stands before neither a quote nor a '\\'");
  }
  return words;
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// The arguments of the master stand in the place of the job's.
void read_arguments(cli::FlagReader& reader, job::JobSpec& spec) {
  const std::string flag = "--master-args";
  if (!reader.has(flag)) return;
  Words words;
  for (const std::string& text : reader.texts(flag)) append(words, split_words(flag, text, reader));
  if (spec.kind == job::Kind::kMpi) {
    // Nobody but the launcher runs the command.
    if (!spec.arguments.empty() || reader.has("--args")) {
      return reader.fault(flag,
                          "only the launcher runs the command; say its arguments behind '--'");
    }
    append(spec.command.empty() ? spec.arguments : spec.command, words);
  } else if (!spec.command.empty()) {
    const bool has_own_arguments = reader.has("--args");
    spec.leader.command = has_own_arguments ? Words{spec.command.front()} : spec.command;
    append(spec.leader.command, words);
  } else if (spec.arguments.empty()) {
    spec.leader.arguments = words;
  } else {
    reader.fault(flag,
                 "cannot replace those of a command that only the image knows; say it with "
                 "--command");
  }
}

void read_master_environment(cli::FlagReader& reader, job::JobSpec& spec) {
  const std::string flag = "--master-environment";
  for (const auto& [name, value] : read_pairs(flag, "write NAME=VALUE", reader)) {
    if (value != "-") {
      spec.leader.environment[name] = value;
    } else if (spec.environment.contains(name)) {
      reader.fault(flag, "'" + name +
                             "=-': a variable that -e sets cannot be taken from the "
                             "master alone; give it another value there");
    }
  }
}

/// Run:AI starts --workers of them. Here an elastic job starts with as many as there is room for,
/// so that those only have to lie between the two others.
void read_replicas(cli::FlagReader& reader, job::JobSpec& spec) {
  const int first = spec.workers;
  const int most = reader.has("--workers") ? reader.number("--max-replicas", first) : first;
  const int least = reader.number("--min-replicas", std::min(first, most));
  for (const char* flag : {"--workers", "--max-replicas", "--min-replicas"}) {
    if (reader.is_at_fault(flag)) return;
  }
  if (least <= most && (first < least || first > most)) {
    reader.fault("--workers", std::to_string(first) +
                                  " is not between --min-replicas and "
                                  "--max-replicas, " +
                                  std::to_string(least) + " and " + std::to_string(most));
  }
  spec.workers = most;
  if (least != most) spec.scheduling.min_workers = least;
}

}  // namespace

std::string workers_flag(const cli::FlagReader& reader, const std::vector<std::string>& path) {
  if (path.front() == "submit-dist") {
    return reader.has("--max-replicas") && !reader.has("--workers") ? "--max-replicas"
                                                                    : "--workers";
  }
  return reader.has("--num-processes") && !reader.has("--processes") ? "--num-processes"
                                                                     : "--processes";
}

void read_workers(cli::FlagReader& reader, const std::vector<std::string>& path,
                  job::JobSpec& spec) {
  if (spec.kind == job::Kind::kSingle) return;
  spec.workers = reader.number(workers_flag(reader, path), 1);
  spec.slots_per_worker = reader.number("--slots-per-worker", 1);
  read_replicas(reader, spec);
}

void read_master(cli::FlagReader& reader, job::JobSpec& spec) {
  if (spec.kind == job::Kind::kSingle) return;
  if (spec.kind != job::Kind::kMpi) spec.leader.resources = spec.resources;
  read_gpus("--master-gpu", reader, spec.leader.resources);
  read_arguments(reader, spec);
  read_master_environment(reader, spec);
}

}  // namespace muster::dialects::runai
