// Kubernetes files for tests: translated to specs, or to lines of faults and warnings.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/fake_random.h"
#include "config/yaml.h"
#include "dialects/kubernetes/kubernetes.h"

namespace muster::dialects::kubernetes {

using Lines = std::vector<std::string>;
using Settings = std::map<std::string, std::string>;

struct TranslatedFile {
  std::vector<TranslatedJob> jobs;
  Lines faults;    ///< "PATH: WHAT"
  Lines warnings;  ///< likewise
};

inline Lines lines_of(const std::vector<base::Fault>& findings) {
  Lines lines;
  for (const base::Fault& one : findings) {
    lines.push_back((one.field.empty() ? "" : one.field + ": ") + one.what);
  }
  return lines;
}

struct FlagsOfFile {
  std::string name = {};
  std::vector<std::string> settings = {};
  bool on_kubernetes = false;
  bool is_root = false;
};

inline TranslatedFile translated_with(const FlagsOfFile& flags, const std::string& text) {
  TranslatedFile file;
  const auto documents = config::parse_yaml_documents(text);
  if (!documents) {
    file.faults = lines_of(documents.error().faults);
    return file;
  }
  base::FakeRandom random;
  job::JobSpec defaults;
  defaults.folder = "/home/ann";
  auto translation = translate(*documents, "job.yaml",
                               {.defaults = defaults,
                                .name = flags.name,
                                .settings = flags.settings,
                                .random = random,
                                .on_kubernetes = flags.on_kubernetes,
                                .is_root = flags.is_root});
  if (!translation) {
    file.faults = lines_of(translation.error().faults);
    return file;
  }
  file.jobs = std::move(translation->jobs);
  file.warnings = lines_of(translation->warnings);
  return file;
}

inline TranslatedFile translated(const std::string& text) {
  return translated_with({}, text);
}

/// The only job of a file without faults.
inline job::JobSpec spec_of(const std::string& text) {
  TranslatedFile file = translated(text);
  for (const std::string& fault : file.faults) ADD_FAILURE() << fault;
  EXPECT_EQ(file.jobs.size(), 1U);
  return file.jobs.empty() ? job::JobSpec() : file.jobs.front().spec;
}

inline Lines faults_of(const std::string& text) {
  return translated(text).faults;
}

/// The warnings of a file without faults.
inline Lines warnings_of(const std::string& text) {
  TranslatedFile file = translated(text);
  for (const std::string& fault : file.faults) ADD_FAILURE() << fault;
  return file.warnings;
}

/// A Job with one container. `pod`: keys of the pod's spec, `container`: of the container, each "key:
/// value" on one line in YAML's short form.
inline std::string simple_job(const Lines& container, const Lines& pod = {},
                              const Lines& spec = {}) {
  std::string text =
      "apiVersion: batch/v1\n"
      "kind: Job\n"
      "metadata: {name: train}\n"
      "spec:\n";
  for (const std::string& line : spec) text += "  " + line + "\n";
  text +=
      "  template:\n"
      "    spec:\n"
      "      restartPolicy: Never\n";
  for (const std::string& line : pod) text += "      " + line + "\n";
  text +=
      "      containers:\n"
      "      - name: main\n"
      "        image: registry.example.com/train:1\n";
  for (const std::string& line : container) text += "        " + line + "\n";
  return text;
}

}  // namespace muster::dialects::kubernetes
