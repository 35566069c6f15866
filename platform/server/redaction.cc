// The sentences come from schedule/reason.cc, explain.cc and holders.cc, and from control/
// scheduling.cc; tests/stranger_sentences_test.cc has them made by the scheduler itself.
#include "server/redaction.h"

#include <cctype>
#include <optional>

#include "base/text.h"

namespace muster::server {

namespace {

constexpr std::string_view kOtherProject = "another project";
constexpr std::string_view kOthersJob = "a job of another project";

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_' ||
         letter == '.';
}

/// Reads a sentence from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ == text_.size(); }
  bool at_word() const { return at_ == 0 || !is_name_letter(text_[at_ - 1]); }
  size_t at() const { return at_; }
  void go_to(size_t at) { at_ = at; }
  char next() { return text_[at_++]; }
  std::string_view since(size_t begin) const { return text_.substr(begin, at_ - begin); }
  std::string_view rest() const { return text_.substr(at_); }

  bool take(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  /// A name, in quotes or without.
  std::optional<std::string> take_name() {
    const size_t begin = at_;
    const bool quoted = take("'");
    const size_t first = at_;
    while (!at_end() && (quoted ? text_[at_] != '\'' : is_name_letter(text_[at_]))) ++at_;
    std::string name(since(first));
    // A name in a list or at the end of a sentence is followed by what is none of it.
    while (!quoted && name.ends_with('.')) {
      name.pop_back();
      --at_;
    }
    if (name.empty() || (quoted && !take("'"))) {
      at_ = begin;
      return std::nullopt;
    }
    return name;
  }

  std::optional<std::string> take_quoted() {
    return rest().starts_with('\'') ? take_name() : std::nullopt;
  }

  bool take_number() {
    const size_t begin = at_;
    while (!at_end() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ > begin;
  }

  /// Whether all of the rules matched; the place is as before where one did not.
  template <class... Rules>
  bool all(Rules... rules) {
    const size_t begin = at_;
    if ((rules() && ...)) return true;
    at_ = begin;
    return false;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

class Sentence {
 public:
  Sentence(std::string_view text, const VisibleNames& visible) : in_(text), visible_(visible) {}

  std::string redacted() {
    while (!in_.at_end()) {
      if (!in_.at_word() || !(job_of_project() || kept_for() || standings() || project() ||
                              others_that_leave() || others_that_made_room())) {
        out_ += in_.next();
      }
    }
    return std::move(out_);
  }

 private:
  /// `by` of project P
  bool job_of_project() {
    const size_t begin = in_.at();
    std::optional<std::string> job;
    std::optional<std::string> project;
    if (!in_.all([&] { return (job = in_.take_quoted()).has_value(); },
                 [&] { return in_.take(" of project "); },
                 [&] { return (project = in_.take_name()).has_value(); })) {
      return false;
    }
    out_ += visible_.project(*project) ? in_.since(begin) : kOthersJob;
    return true;
  }

  bool kept_for() {
    const size_t begin = in_.at();
    std::optional<std::string> job;
    if (!in_.all([&] { return in_.take("kept for "); },
                 [&] { return (job = in_.take_quoted()).has_value(); })) {
      return false;
    }
    if (visible_.job(*job)) {
      out_ += in_.since(begin);
    } else {
      out_ += "kept for " + std::string(kOthersJob);
    }
    return true;
  }

  /// ": project P uses ...; project Q (above R) uses ...": how the two stand between whom the room
  /// was to be divided. Of it only what is the reader's remains.
  bool standings() {
    const size_t before = out_.size();
    if (!in_.take("claims its share")) return false;
    out_ += "claims its share";
    const char* separator = ": ";
    while (in_.rest().starts_with(": project ") || in_.rest().starts_with("; project ")) {
      const size_t begin = in_.at();
      in_.take(in_.rest().substr(0, 2));
      const size_t standing = in_.at();
      const auto own = take_standing();
      if (!own) {
        in_.go_to(begin);
        break;
      }
      if (!*own) continue;
      out_ += separator;
      out_ += in_.since(standing);
      separator = "; ";
    }
    return out_.size() > before;
  }

  /// project P (above R) uses ... (quota ..., fair share ..., priority N)
  /// Whether the reader sees P; nothing: it is none.
  std::optional<bool> take_standing() {
    std::optional<std::string> project;
    const bool is_one =
        in_.all([&] { return in_.take("project "); },
                [&] { return (project = in_.take_name()).has_value(); },
                [&] { return take_above() || true; }, [&] { return in_.take(" uses "); },
                [&] { return skip_to(", priority "); }, [&] { return in_.take_number(); },
                [&] { return in_.take(")"); });
    if (!is_one) return std::nullopt;
    return visible_.project(*project);
  }

  bool skip_to(std::string_view words) {
    const size_t found = in_.rest().find(words);
    if (found == std::string_view::npos) return false;
    in_.go_to(in_.at() + found + words.size());
    return true;
  }

  bool take_above() {
    return in_.all([&] { return in_.take(" (above "); },
                   [&] { return (above_ = in_.take_name()).has_value(); },
                   [&] { return in_.take(")"); });
  }

  /// "project P", "project P (above Q)"
  bool project() {
    const size_t begin = in_.at();
    std::optional<std::string> name;
    if (!in_.all([&] { return in_.take("project "); },
                 [&] { return (name = in_.take_name()).has_value(); })) {
      return false;
    }
    if (visible_.project(*name)) {
      out_ += in_.since(begin);
    } else if (take_above() && visible_.project(*above_)) {
      out_ += "a project above " + *above_;
    } else {
      out_ += kOtherProject;
    }
    return true;
  }

  /// 2 tasks of others are still leaving
  bool others_that_leave() {
    if (!in_.all([&] { return in_.take_number(); },
                 [&] { return in_.take(" task of others is") || in_.take(" tasks of others are"); },
                 [&] { return in_.take(" still leaving"); })) {
      return false;
    }
    out_ += "others are still leaving";
    return true;
  }

  /// starts as soon as 2 others have made room for it
  bool others_that_made_room() {
    if (!in_.all([&] { return in_.take("as soon as "); }, [&] { return in_.take_number(); },
                 [&] { return in_.take(" other has") || in_.take(" others have"); })) {
      return false;
    }
    out_ += "as soon as others have";
    return true;
  }

  Reader in_;
  const VisibleNames& visible_;
  std::optional<std::string> above_;
  std::string out_;
};

std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

/// The project that a holder is of: "team-a (2 GPUs)", "'dist' of team-a (2 GPUs)", "team-a holds
/// 2 GPUs". Nothing: it is no holder, but "3 more".
std::optional<std::string> project_of(std::string_view holder) {
  Reader in(holder);
  if (in.take_quoted() && !in.take(" of ")) return std::nullopt;
  auto name = in.take_name();
  if (!name || !(in.take(" (") || in.take(" holds "))) return std::nullopt;
  return name;
}

/// "A (2 GPUs), B (1 GPU) and 3 more": those that the reader sees, and whether there are others.
std::string visible_holders(std::string_view list, const VisibleNames& visible) {
  std::vector<std::string> seen;
  bool others = false;
  for (const std::string& part : base::split(list, ',')) {
    for (std::string_view rest = part; !rest.empty();) {
      const size_t end = rest.find(" and ");
      std::string_view holder = rest.substr(0, end);
      rest = end == std::string_view::npos ? "" : rest.substr(end + 5);
      while (holder.starts_with(' ')) holder.remove_prefix(1);
      const auto project = project_of(holder);
      const bool shown = project && visible.project(*project);
      if (shown) seen.emplace_back(holder);
      others = others || !shown;
    }
  }
  if (seen.empty()) return "";
  if (others) seen.emplace_back("others");
  return listed(seen);
}

/// `head` and what of the list behind it the reader sees, or nothing.
std::string holders(const std::string& head, std::string_view list, const VisibleNames& visible) {
  const std::string seen = visible_holders(list, visible);
  return seen.empty() ? "" : head + seen;
}

std::string redacted_detail(std::string_view detail, const VisibleNames& visible) {
  Reader in(detail);
  for (const char* const head : {"held by project: ", "held by job: "}) {
    if (in.take(head)) return holders(head, in.rest(), visible);
  }
  if (in.take("below ")) {
    const auto project = in.take_name();
    if (!project || !in.take(", ")) return "";
    const std::string where = visible.project(*project) ? *project : "a project above";
    return holders("below " + where + ", ", in.rest(), visible);
  }
  return redacted_sentence(detail, visible);
}

/// The job of another project is evicted where the sentence says how that one stands, and it is not
/// the reader's; of one that is moved it says no project, and its name has to do.
bool sees_evicted(std::string_view eviction, const VisibleNames& visible) {
  Reader in(eviction);
  const auto name = in.take_quoted();
  if (!name || !visible.job(*name)) return false;
  constexpr std::string_view kLoser = "claims its share: project ";
  const size_t found = eviction.find(kLoser);
  if (found == std::string_view::npos) return true;
  in.go_to(found + kLoser.size());
  auto project = in.take_name();
  if (in.take(" (above ")) project = in.take_name();
  return project && visible.project(*project);
}

}  // namespace

std::string redacted_sentence(std::string_view sentence, const VisibleNames& visible) {
  return Sentence(sentence, visible).redacted();
}

std::vector<std::string> redacted_details(const std::vector<std::string>& details,
                                          const VisibleNames& visible) {
  std::vector<std::string> result;
  for (const std::string& detail : details) {
    std::string redacted = redacted_detail(detail, visible);
    if (!redacted.empty()) result.push_back(std::move(redacted));
  }
  return result;
}

std::vector<std::string> redacted_evictions(const std::vector<std::string>& evictions,
                                            const VisibleNames& visible) {
  std::vector<std::string> result;
  bool others = false;
  for (const std::string& eviction : evictions) {
    if (sees_evicted(eviction, visible)) {
      result.push_back(redacted_sentence(eviction, visible));
    } else {
      others = true;
    }
  }
  if (others) result.emplace_back("jobs of other projects would be evicted for it");
  return result;
}

}  // namespace muster::server
