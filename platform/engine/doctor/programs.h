// Asks programs of a machine what they say, all at once and each for a bounded time.
//
// Blocking: for as long as the slowest takes, or the bound.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace muster::engine::doctor {

/// How long whatever is asked may take.
inline constexpr std::chrono::milliseconds kPatience{5000};

struct Question {
  std::string name;  ///< of the answer
  std::vector<std::string> argv;
};

struct Answer {
  std::string path;       ///< of the program; empty: it is not there
  bool was_late = false;  ///< it had not ended when the time was over
  int code = -1;
  std::string output;
  std::string errors;

  bool is_there() const { return !path.empty(); }
  bool is_good() const { return is_there() && !was_late && code == 0; }
};

using Answers = std::map<std::string, Answer>;

/// `environment`: NAME=value, of the programs; its PATH says where they are looked for.
Answers ask_all(const std::vector<Question>& questions, const std::vector<std::string>& environment,
                std::chrono::milliseconds patience = kPatience);

/// The answer of this name; one of a program that is not there, where nobody asked.
const Answer& answer_in(const Answers& answers, const std::string& name);

/// The first line of a text that says something, without the blanks around it.
std::string first_line(const std::string& text);

/// What a program that is there said that went wrong, or that it said nothing in time.
std::string complaint(const Answer& answer);

}  // namespace muster::engine::doctor
