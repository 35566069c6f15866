#include "access/user.h"

#include <algorithm>

namespace muster::access {

namespace {

using base::Fault;

constexpr size_t kLongestName = 64;

bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

bool is_of_a_name(char letter) {
  return is_letter_or_digit(letter) || std::string_view("._-@").find(letter) != std::string::npos;
}

void check_name(const std::string& name, std::vector<Fault>& faults) {
  const auto fault = [&](std::string what) { faults.push_back({"name", std::move(what)}); };
  if (name.empty()) return fault("is missing");
  if (name.size() > kLongestName) {
    fault("is " + std::to_string(name.size()) + " characters long; at most " +
          std::to_string(kLongestName) + " are allowed");
  }
  if (!std::all_of(name.begin(), name.end(), is_of_a_name)) {
    fault("may hold only a-z, 0-9, '.', '_', '-' and '@'");
  }
  if (is_of_a_name(name.front()) && !is_letter_or_digit(name.front())) {
    fault("must begin with a letter or digit");
  }
}

}  // namespace

std::vector<Fault> validate_user(const User& user) {
  std::vector<Fault> faults;
  check_name(user.name, faults);
  for (const auto& [project, role] : user.projects) {
    if (project.empty()) faults.push_back({"projects", "has a role in a project without a name"});
    if (role == Role::kNone) {
      faults.push_back({"projects." + project, "no role is told by leaving the project out"});
    }
  }
  return faults;
}

}  // namespace muster::access
