//! How the classes of kinds are declared: what Python sees of a type, transform or expression is an instance of the
//! class of its kind, which has nothing but its name, and a constructor where users make one.

/// Defines classes of a module of Python, each below another one, and the function that registers them.
macro_rules! classes {
    ($module:literal: $($(#[$doc:meta])+ $class:ident $name:tt of $base:ident;)*) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, extends = $base, name = $name, module = $module)]
            #[derive(Debug)]
            pub(crate) struct $class;
        )*
        fn register_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
    };
}

/// Defines classes that other ones are below, and the function that registers them.
macro_rules! bases {
    ($module:literal: $($(#[$doc:meta])+ $class:ident $name:tt of $base:ident;)*) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, subclass, extends = $base, name = $name, module = $module)]
            #[derive(Debug)]
            pub(crate) struct $class;
        )*
        fn register_bases(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
    };
}

/// An instance of a class below the one that is made.
macro_rules! made {
    ($py:expr, $base:expr, $class:expr) => {
        Bound::new($py, $base.add_subclass($class))?.into_any()
    };
}

pub(crate) use {bases, classes, made};
