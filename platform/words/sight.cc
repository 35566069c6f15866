#include "words/sight.h"

#include <algorithm>
#include <type_traits>

namespace muster::words {

namespace {

using job::Holders;
using job::JobRef;
using job::Others;
using job::ProjectRef;
using job::ProjectShare;

template <class T>
concept WithFields = requires(T& value) { T::fields(value, [](std::string_view, auto&) {}); };

/// Values that name no other job or project: the job's own texts, its nodes, numbers.
template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string> ||
                std::same_as<T, std::vector<std::string>> || std::same_as<T, base::Time> ||
                std::same_as<T, std::chrono::milliseconds> || std::same_as<T, job::Amounts> ||
                std::same_as<T, job::Claim> || std::same_as<T, std::vector<job::Resource>>;

class Veil {
 public:
  explicit Veil(const Sight& sight) : sight_(sight) {}

  void hide(JobRef& job) const {
    if (!sight_.job(job)) job = {.hidden = true};
  }

  void hide(ProjectRef& project) const {
    if (!project.above.empty() && !sight_.project(project.above)) project.above.clear();
    if (sight_.project(project.name)) return;
    project.name.clear();
    project.hidden = true;
  }

  void hide(Others& others) const { others.count.reset(); }

  void hide(Holders& holders) const {
    const size_t erased = std::erase_if(holders.named, [&](const job::Holding& holding) {
      return holding.job ? !sight_.job(*holding.job) : !sight_.project(holding.project);
    });
    if (erased == 0 && holders.more == 0) return;
    holders.more = 0;
    holders.more_amount = 0;
    holders.hidden = true;
  }

  void hide(std::vector<ProjectShare>& shares) const {
    for (ProjectShare& share : shares) hide(share.project);
    std::erase_if(shares, [](const ProjectShare& share) { return share.project.hidden; });
  }

  template <Plain T>
  void hide(T&) const {}
  template <WithFields T>
  void hide(T& value) const {
    T::fields(value, [this](std::string_view, auto& field) { hide(field); });
  }
  template <WithFields T>
  void hide(std::vector<T>& values) const {
    for (T& value : values) hide(value);
  }
  template <class T>
  void hide(std::optional<T>& value) const {
    if (value) hide(*value);
  }
  template <class... Alternatives>
  void hide(std::variant<Alternatives...>& value) const {
    std::visit([this](auto& alternative) { hide(alternative); }, value);
  }

 private:
  const Sight& sight_;
};

bool is_empty_detail(const job::Detail& detail) {
  const auto* const held = std::get_if<job::HeldByOthers>(&detail.what);
  return held != nullptr && held->holders.hidden && held->holders.named.empty();
}

template <class Facts>
Facts veiled(const Sight& sight, Facts facts) {
  Veil(sight).hide(facts);
  return facts;
}

}  // namespace

Sight sight_of_project(const std::string& project) {
  return {.project = [project](const std::string& name) { return name == project; },
          .job = [project](const JobRef& job) { return job.project == project; }};
}

job::Fact seen_by(const Sight& sight, job::Fact fact) {
  return veiled(sight, std::move(fact));
}

job::Eviction seen_by(const Sight& sight, job::Eviction why) {
  return veiled(sight, std::move(why));
}

job::Reason seen_by(const Sight& sight, job::Reason reason) {
  const Veil veil(sight);
  veil.hide(reason.what);
  for (job::Detail& detail : reason.details) veil.hide(detail.what);
  std::erase_if(reason.details, is_empty_detail);
  return reason;
}

void hide_from(const Sight& sight, job::Job& job) {
  job.reason = seen_by(sight, std::move(job.reason));
  const Veil veil(sight);
  veil.hide(job.eviction);
  for (job::Event& event : job.events) veil.hide(event.what);
}

void hide_from(const Sight& sight, job::Explanation& explanation) {
  explanation.reason = seen_by(sight, std::move(explanation.reason));
  for (job::Event& event : explanation.events) Veil(sight).hide(event.what);
}

void hide_from(const Sight& sight, job::Forecast& forecast) {
  forecast.reason = seen_by(sight, std::move(forecast.reason));
  const Veil veil(sight);
  for (job::ExpectedEviction& eviction : forecast.evictions) {
    veil.hide(eviction.job);
    veil.hide(eviction.why);
  }
  const auto is_hidden = [](const job::ExpectedEviction& each) { return each.job.hidden; };
  if (std::erase_if(forecast.evictions, is_hidden) > 0) forecast.hides_evictions = true;
}

}  // namespace muster::words
