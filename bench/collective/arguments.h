// The arguments of a program of this benchmark: words `--name=value`. Only collective.py starts
// these programs, so an invalid word ends the program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

class Arguments {
 public:
  Arguments(int argc, char** argv);

  std::string text(const std::string& name, const std::string& otherwise) const;
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const;

  /// `--name=a,b,c`.
  std::vector<std::string> list(const std::string& name, const std::string& otherwise) const;

 private:
  std::map<std::string, std::string> words_;
};

/// Prints the reason to standard error and ends the program.
[[noreturn]] void fail(const std::string& why);

/// Ends the program if a result of the library is an error.
template <typename ResultType>
void need(const ResultType& result) {
  if (!result) fail(result.error().to_string());
}

}  // namespace bench
