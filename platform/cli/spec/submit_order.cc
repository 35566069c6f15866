#include "cli/spec/submit_order.h"

#include <algorithm>
#include <optional>
#include <string>

namespace muster::cli::spec {

namespace {

/// A search in depth. A job that is entered again before it was left waits for itself.
class SubmitOrder {
 public:
  explicit SubmitOrder(const std::vector<const job::JobSpec*>& specs)
      : specs_(specs), state_(specs.size(), State::kNew) {}

  base::Result<std::vector<size_t>> find() {
    for (size_t i = 0; i < specs_.size(); ++i) MUSTER_CHECK(visit(i));
    return order_;
  }

 private:
  enum class State { kNew, kEntered, kLeft };

  std::optional<size_t> index_of(const std::string& name, const std::string& project) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i]->name == name && specs_[i]->project == project) return i;
    }
    return std::nullopt;
  }

  base::Result<void> visit(size_t index) {
    if (state_[index] == State::kLeft) return {};
    if (state_[index] == State::kEntered) return circle(index);
    state_[index] = State::kEntered;
    path_.push_back(index);
    for (const job::Dependency& dependency : specs_[index]->after) {
      const auto other = index_of(dependency.job, specs_[index]->project);
      if (other) MUSTER_CHECK(visit(*other));
    }
    path_.pop_back();
    state_[index] = State::kLeft;
    order_.push_back(index);
    return {};
  }

  base::Error circle(size_t index) const {
    std::string names;
    const auto start = std::find(path_.begin(), path_.end(), index);
    for (auto at = start; at != path_.end(); ++at) names += specs_[*at]->name + " waits for ";
    return {.code = base::ErrorCode::kInvalid,
            .what = "jobs wait for each other in a circle: " + names + specs_[index]->name,
            .advice = "remove one of these from 'after'"};
  }

  const std::vector<const job::JobSpec*>& specs_;
  std::vector<State> state_;
  std::vector<size_t> path_;
  std::vector<size_t> order_;
};

}  // namespace

base::Result<std::vector<size_t>> submit_order(const std::vector<const job::JobSpec*>& specs) {
  return SubmitOrder(specs).find();
}

}  // namespace muster::cli::spec
