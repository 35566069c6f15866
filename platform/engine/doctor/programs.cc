#include <utility>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "engine/doctor/doctor.h"
#include "engine/program_runner.h"

namespace muster::engine::doctor {

namespace {

ProgramAnswer answer_of(std::string path, base::Result<ProgramEnd> end) {
  ProgramAnswer answer{.path = std::move(path)};
  if (!end) {
    answer.errors = end.error().to_string();
    return answer;
  }
  answer.was_late = end->was_late;
  answer.code = end->code;
  answer.output = std::move(end->output);
  answer.errors = std::move(end->errors);
  return answer;
}

}  // namespace

Answers ask_all(const std::vector<Question>& questions, const std::vector<std::string>& environment,
                std::chrono::milliseconds patience) {
  Answers answers;
  base::EventLoop loop;
  ProgramRunner runner(loop, questions.size() + 1);
  size_t left = 0;
  for (const Question& question : questions) {
    const auto path = base::find_program(question.argv.front(), environment);
    answers[question.name] = ProgramAnswer();
    if (!path) continue;
    ProgramPlan plan{
        .argv = question.argv, .environment = environment, .input = {}, .patience = patience};
    plan.argv.front() = *path;
    ++left;
    runner.run(std::move(plan),
               [&, name = question.name, path = *path](base::Result<ProgramEnd> end) {
                 answers[name] = answer_of(path, std::move(end));
                 if (--left == 0) loop.stop();
               });
  }
  if (left > 0) loop.run();
  return answers;
}

const ProgramAnswer& answer_in(const Answers& answers, const std::string& name) {
  static const ProgramAnswer kNone;
  const auto found = answers.find(name);
  return found == answers.end() ? kNone : found->second;
}

std::string first_line(const std::string& text) {
  for (const std::string& line : base::split(text, '\n')) {
    const std::string_view words = base::trimmed(line);
    if (!words.empty()) return base::as_utf8(words);
  }
  return "";
}

std::string complaint(const ProgramAnswer& answer) {
  constexpr size_t kMost = 200;
  if (answer.was_late) return "it did not answer in time";
  const std::string reported = first_line(answer.errors);
  if (!reported.empty()) return base::shortened(reported, kMost);
  const std::string printed = first_line(answer.output);
  if (!printed.empty()) return base::shortened(printed, kMost);
  return answer.code < 0 ? "it was killed by a signal"
                         : "it ended with code " + std::to_string(answer.code);
}

}  // namespace muster::engine::doctor
