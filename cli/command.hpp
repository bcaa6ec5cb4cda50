#pragma once
// The words of a command line: programs, verbs, their options, and what values these take.
//
// Contract: a thin layer over CLI11, whose names it keeps. CLI11's header takes a compiler six
// seconds, so that command.cpp alone includes it. Command and Option refer to what their
// CommandLine owns. Help texts are CLI11's.

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace strata::cli {

/// What a value has to be, and how the help says it.
class Check {
 public:
  /// `complaint` returns what is wrong with a text, or nothing; as a transformation it may change
  /// the text.
  Check(std::function<std::string(std::string&)> complaint, const std::string& description);
  /// What is wrong with a text; empty: nothing.
  [[nodiscard]] std::string operator()(std::string& text) const;

 private:
  friend class Option;
  friend Check in_range(int lower, int upper);
  friend Check in_range(double lower, double upper);
  friend Check one_of(std::initializer_list<const char*> values);
  friend Check one_of(std::initializer_list<double> values);
  explicit Check(std::shared_ptr<const CLI::Validator> validator);

  std::shared_ptr<const CLI::Validator> validator_;
};
[[nodiscard]] Check in_range(int lower, int upper);
[[nodiscard]] Check in_range(double lower, double upper);
[[nodiscard]] Check one_of(std::initializer_list<const char*> values);
[[nodiscard]] Check one_of(std::initializer_list<double> values);

/// Says that a value does not serve: "OPTION: why". For add_option_function.
[[noreturn]] void refuse_value(const std::string& option, const std::string& why);

class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  Option required(bool value = true);
  Option capture_default_str();
  Option default_str(const std::string& text);
  Option description(const std::string& text);
  Option check(const Check& check);
  Option transform(const Check& check);
  Option needs(const Option& other);
  Option excludes(const Option& other);
  /// Whether it was on the command line.
  [[nodiscard]] bool given() const;
  [[nodiscard]] std::string name() const;

 private:
  CLI::Option* option_;
};

/// A program or a verb.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  Command add_subcommand(const std::string& name, const std::string& help);
  void require_subcommand();
  void footer(const std::string& text);
  /// What happens where the words of a verb were read.
  void callback(const std::function<void()>& action);

  /// For text, numbers and optional ones; command.cpp lists the types.
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& help = "");
  /// An option of several values: one word, in which they are separated by commas. What follows it
  /// is not its own.
  template <class T>
  Option add_list(const std::string& name, std::vector<T>& values, const std::string& help);
  Option add_flag(const std::string& name, bool& value, const std::string& help);
  /// An option whose text is read by `read`.
  Option add_option_function(const std::string& name,
                             const std::function<void(const std::string&)>& read,
                             const std::string& help);
  [[nodiscard]] Option get_option(const std::string& name) const;

 private:
  CLI::App* app_;
};

/// A command line that is wrong, with what is said of it.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A program's words.
class CommandLine {
 public:
  /// `version` is what --version says.
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  CommandLine(const CommandLine&) = delete;  // what refers to it would not
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  [[nodiscard]] Command program() const;
  /// Reads the words, after which a verb's callback has run. Prints a help or version that was
  /// asked for and returns the exit status then. Throws UsageError.
  std::optional<int> parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace strata::cli
