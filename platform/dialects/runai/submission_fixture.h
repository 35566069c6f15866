// Command lines of `runai submit` and its variants for tests: read as a submission or as faults.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "cli/command/arguments.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/submission.h"
#include "dialects/runai/words.h"

namespace muster::dialects::runai {

using Words = std::vector<std::string>;

inline cli::Caller caller_in_home() {
  return {.folder = "/home/ann/code",
          .environment = {{"HOME", "/home/ann"}, {"PATH", "/bin"}, {"TOKEN", "secret"}},
          .now = {},
          .user = 1000,
          .group = 100};
}

struct ReadSubmission {
  Submission submission;
  std::vector<std::string> faults;  ///< "FLAG what", in order
};

inline ReadSubmission read_words(const Words& words, bool on_kubernetes = false) {
  const cli::Arguments arguments = cli::sort_arguments(command_tree(), plain_words(words));
  cli::FlagReader reader(arguments);
  ReadSubmission read{
      .submission = read_submission(arguments, reader, caller_in_home(), words, on_kubernetes),
      .faults = {}};
  for (const base::Fault& fault : reader.faults()) {
    read.faults.push_back(fault.field.empty() ? fault.what
                                              : base::fault_message(fault.field, fault.what));
  }
  return read;
}

/// The submission of a command line without faults.
inline Submission asked_by(const Words& words, bool on_kubernetes = false) {
  ReadSubmission read = read_words(words, on_kubernetes);
  for (const std::string& fault : read.faults) ADD_FAILURE() << fault;
  return std::move(read.submission);
}

/// `runai submit-mpi dist -i img` and more.
inline Words mpi_with(const Words& more) {
  Words words{"submit-mpi", "dist", "-i", "img"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline Words submit_with(const Words& more) {
  Words words{"submit", "train", "-i", "img"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline Words dist_with(const std::string& kind, const Words& more) {
  Words words{"submit-dist", kind, "dist", "-i", "img"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The only fault.
inline std::string fault_of(const Words& words) {
  const std::vector<std::string> faults = read_words(words).faults;
  if (faults.size() == 1) return faults.front();
  std::string all = std::to_string(faults.size()) + " faults";
  for (const std::string& fault : faults) all += "\n" + fault;
  return all;
}

}  // namespace muster::dialects::runai
