// For tests: the input of a doctor, and its findings.
#pragma once

#include <string>

#include "engine/doctor/doctor.h"
#include "job/diagnosis.h"

namespace muster::engine::doctor {

/// The answer of a program in /usr/bin that succeeded.
inline ProgramAnswer good_answer(const std::string& name, const std::string& output) {
  return {.path = "/usr/bin/" + name, .code = 0, .output = output};
}

inline job::Finding finding_on(const job::Diagnosis& diagnosis, const std::string& subject) {
  for (const job::Finding& finding : diagnosis.findings) {
    if (finding.subject == subject) return finding;
  }
  return {.subject = "none"};
}

}  // namespace muster::engine::doctor
