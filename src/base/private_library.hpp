#pragma once
// A second instance of a shared library, with variables and settings of its own.
//
// Contract: the instance shares nothing with one of the same file that is loaded already, or that
// is loaded later: not its variables, not its threads, and no symbol of either resolves to the
// other. It stays loaded until the process ends unless its handle is closed.
//
// Method: the dynamic loader knows a library by its file and by its name (DT_SONAME). So the file
// is copied into memory (memfd_create, as much memory as the file is large), and the name of the
// copy is overwritten with DT_SYMBOLIC. With it the library's own symbols come first when it looks
// for them, before those of a twin in the global scope. RTLD_DEEPBIND would do that too, but takes
// malloc from the program's dependencies as well, which sanitizers and allocators cannot bear;
// dlmopen would bring a second C library.

#include <string>

namespace strata {

struct PrivateLibrary {
  void* handle = nullptr;  ///< of dlopen; null if it failed
  std::string why;         ///< then
};

/// Redirects to `target` the calls of `function` by the library of `handle`, and by no other. It
/// must have been loaded with all its symbols bound, as open_private_copy does, and not run yet.
/// False if it calls no function of that name in another library, or cannot be changed.
[[nodiscard]] bool redirect_calls(void* handle, const std::string& function, void* target);

/// Loads a private instance of the file `path`. What it depends on is shared, and is found more
/// surely if the library itself is loaded at the time: the copy has no folder to look beside.
[[nodiscard]] PrivateLibrary open_private_copy(const std::string& path);

}  // namespace strata
