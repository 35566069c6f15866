// For tests of the ledger: books of GPUs, written as the scenarios are.
//
//   Books books({.gpus = 4}, {{"q0", 1, {.weight = 1}}, {"q1", 1, {.weight = 1}}});
//   books.runs("q0", 2, kPreemptible);
//   books.waits("q1", 1);
//   books.settle();
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "schedule/ledger.h"

namespace muster::schedule {

inline constexpr bool kPreemptible = true;
inline constexpr bool kNonPreemptible = false;

inline int64_t milli(double amount) {
  return std::llround(amount * 1000);
}

inline Amounts gpus(double count) {
  return {milli(count), 0, 0};
}

/// A quota of GPUs; below 0: unlimited. CPUs and memory are unlimited.
struct ProjectLine {
  struct Options {
    double weight = 0;
    double limit = -1;
    int priority = 100;
    std::string parent = {};
  };
  std::string name;
  double deserved = 0;
  Options options = {};
};

inline std::vector<Project> projects_of(const std::vector<ProjectLine>& lines) {
  const auto bound = [](double gpus) { return gpus < 0 ? kUnlimited : milli(gpus); };
  std::vector<Project> projects;
  for (const ProjectLine& line : lines) {
    Project& project = projects.emplace_back();
    project.name = line.name;
    project.parent = line.options.parent;
    project.priority = line.options.priority;
    project.sequence = projects.size();
    project.quota = {.deserved = {bound(line.deserved), kUnlimited, kUnlimited},
                     .limit = {bound(line.options.limit), kUnlimited, kUnlimited},
                     .weight = line.options.weight};
  }
  return projects;
}

/// A ledger whose projects are named, with amounts in GPUs.
struct Books {
  struct Pool {
    double gpus = 0;
  };

  explicit Books(const std::vector<ProjectLine>& lines) : Books(Pool{}, lines) {}
  Books(Pool pool, const std::vector<ProjectLine>& lines) {
    ledger.set_total({milli(pool.gpus), kUnlimited, kUnlimited});
    ledger.set_projects(projects_of(lines), kDefaultPool);
  }

  ProjectIndex operator[](const std::string& name) const { return ledger.find(name); }
  Standing standing(const std::string& name) const { return ledger.standing(ledger.find(name)); }
  double fair(const std::string& name) const {
    return static_cast<double>(standing(name).fair_share.gpu_milli) / 1000;
  }

  void waits(const std::string& name, double count) {
    ledger.add_request(ledger.find(name), gpus(count));
  }
  void runs(const std::string& name, double count, bool preemptible) {
    waits(name, count);
    ledger.allocate(ledger.find(name), gpus(count), preemptible);
  }
  void ends(const std::string& name, double count, bool preemptible) {
    ledger.remove_request(ledger.find(name), gpus(count));
    ledger.release(ledger.find(name), gpus(count), preemptible);
  }
  void settle() { ledger.settle_fair_shares(); }

  Ledger ledger;
};

}  // namespace muster::schedule
