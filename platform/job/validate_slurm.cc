#include "job/validate_slurm.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace muster::job {

namespace {

constexpr size_t kLongestSlurmName = 128;
constexpr size_t kLongestText = 1024;

bool is_of_a_name(char c) {
  constexpr std::string_view kOthers = "_-.+:@";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_list_of_names(const std::string& text) {
  const std::vector<std::string> names = base::split(text, ',');
  return text.size() <= kLongestText && std::all_of(names.begin(), names.end(), is_slurm_name);
}

/// Features and what Slurm joins them with. Which of them make sense is Slurm's to say.
bool is_constraint(std::string_view text) {
  constexpr std::string_view kJoins = "&|*,()[]!=/";
  return text.size() <= kLongestText && !text.starts_with('-') &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_of_a_name(c) || kJoins.find(c) != std::string_view::npos;
         });
}

}  // namespace

bool is_slurm_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestSlurmName && text.front() != '-' &&
         text.front() != '.' && std::all_of(text.begin(), text.end(), is_of_a_name);
}

void check_slurm(const SlurmSpec& slurm, Checker& check) {
  const std::string what_it_has = "; a name has letters, digits and _-.+:@";
  const auto lists = [&](const std::string& text, const std::string& field,
                         const std::string& noun) {
    check.require(text.empty() || is_list_of_names(text), "slurm." + field,
                  in_quotes(text) + " is neither the name of a " + noun +
                      " nor several with commas between them" + what_it_has);
  };
  lists(slurm.partition, "partition", "partition");
  check.require(slurm.account.empty() || is_slurm_name(slurm.account), "slurm.account",
                in_quotes(slurm.account) + " is not the name of an account" + what_it_has);
  lists(slurm.qos, "qos", "QOS");
  lists(slurm.reservation, "reservation", "reservation");
  check.require(is_constraint(slurm.constraint), "slurm.constraint",
                in_quotes(slurm.constraint) +
                    " is not made of features of nodes, as a100&nvlink is; it has letters, "
                    "digits, _-.+:@ and Slurm's &|*,()[]!=/");
}

}  // namespace muster::job
